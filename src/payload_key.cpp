#include "payload_key.hpp"

#include "args.hpp"
#include "errors.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

struct Source {
  const Actor& actor;
  const ActorResource& resource;

  const char* text() const {
    const char* kind = resource.kind == ResourceKind::reservation ? "Reservation" : "Rate limit";
    return psprintf("%s \"%s\" of actor \"%s\" takes its key from %s", kind, shown(resource.name), shown(actor.name), path_text(resource));
  }
};

[[noreturn]] void raise_no_payload(const Source& source) {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("actor \"%s\" needs a payload", shown(source.actor.name)),
                  errdetail("%s, and the payload is NULL.", source.text()), errhint("Pass the payload of the job: payload => '{...}'.")));
}

[[noreturn]] void raise_bad_key(const Source& source, int sqlstate, const char* message, const char* found) {
  ereport(ERROR, (errcode(sqlstate), errmsg("%s", message), errdetail("%s, which yields %s.", source.text(), found),
                  errhint("The path must yield one string, number or boolean in every payload.")));
}

const Jsonb* find_all(const ActorResource& resource, const Jsonb* payload) {
  const Datum no_variables = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));
  const Datum silent = BoolGetDatum(false);
  return DatumGetJsonbP(DirectFunctionCall4(jsonb_path_query_array, PointerGetDatum(payload), resource.key_path, no_variables, silent));
}

const char* json_text(const Jsonb* found) {
  // Without the brackets of the list that the items came in.
  char* text = JsonbToCString(nullptr, const_cast<JsonbContainer*>(&found->root), VARSIZE(found));
  const std::size_t length = strlen(text);
  return shown({text + 1, length < 2 ? 0 : length - 2});
}

std::string_view number_key(Numeric number) {
  const char* text = DatumGetCString(DirectFunctionCall1(numeric_out, DirectFunctionCall1(numeric_trim_scale, NumericGetDatum(number))));
  return {text, strlen(text)};
}

std::string_view scalar_key(const Source& source, const Jsonb* found, const JsonbValue& value) {
  switch (value.type) {
    case jbvString: return {value.val.string.val, static_cast<std::size_t>(value.val.string.len)};
    case jbvNumeric: return number_key(value.val.numeric);
    case jbvBool: return value.val.boolean ? "true" : "false";
    default: break;
  }
  const bool null = value.type == jbvNull;
  raise_bad_key(source, ERRCODE_SQL_JSON_SCALAR_REQUIRED, null ? "a key must not be null" : "a key must not be an object or an array",
                json_text(found));
}

}  // namespace

std::string_view payload_key(const Actor& actor, const ActorResource& resource, const Jsonb* payload) {
  const Source source{actor, resource};
  if (payload == nullptr) raise_no_payload(source);
  const Jsonb* found = find_all(resource, payload);
  const uint32 count = JsonContainerSize(&found->root);
  if (count == 0) raise_bad_key(source, ERRCODE_NO_SQL_JSON_ITEM, "the payload has no key", "nothing");
  if (count > 1) raise_bad_key(source, ERRCODE_MORE_THAN_ONE_SQL_JSON_ITEM, "the payload has more than one key", json_text(found));
  const JsonbValue* value = getIthJsonbValueFromContainer(const_cast<JsonbContainer*>(&found->root), 0);
  const std::string_view key = scalar_key(source, found, *value);
  if (key.empty()) raise_bad_key(source, ERRCODE_INVALID_PARAMETER_VALUE, "a key must not be empty", json_text(found));
  check_key_length(key);
  return key;
}

}  // namespace taskq::pg
