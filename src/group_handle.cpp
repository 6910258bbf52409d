#include "group_handle.hpp"

#include <cmath>

#include "args.hpp"
#include "errors.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Micros;

namespace {

void append_text(StringInfo json, const char* field, std::string_view value) {
  appendStringInfo(json, "\"%s\": ", field);
  escape_json(json, pnstrdup(value.data(), value.size()));
}

void append_slot(StringInfo json, const GroupRequest& r) {
  append_text(json, "name", r.name);
  appendStringInfoString(json, ", ");
  append_text(json, "key", r.key);
  appendStringInfo(json, ", \"slot\": %d, \"fence\": " INT64_FORMAT, r.slot.slot_index, r.slot.fence);
}

// Instants are microseconds since 2000-01-01, waits microseconds.
void append_limit(StringInfo json, const GroupRequest& r) {
  const ratelimit::Decision& d = r.answer.decision;
  append_text(json, "name", r.name);
  appendStringInfoString(json, ", ");
  append_text(json, "key", r.key);
  appendStringInfo(json, ", \"cost\": %s", number_text(r.call.amount));
  appendStringInfo(json, ", \"remaining\": %s", number_text(ratelimit::to_amount(r.call.definition.limit, d.remaining)));
  appendStringInfo(json, ", \"decided_at\": " INT64_FORMAT, d.decided_at);
  if (d.reset_after != kNever) appendStringInfo(json, ", \"reset_after\": " INT64_FORMAT, d.reset_after);
  if (r.answer.has_request_id) {
    appendStringInfo(json, ", \"request_id\": \"%s\"", DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&r.answer.request_id))));
  }
}

bool took_a_slot(const GroupRequest& r) { return r.has_lease; }

// Once per bucket: the first request stands for all that share it.
bool took_from_a_limit(const GroupRequest& r) {
  return r.kind == ResourceKind::rate_limit && r.first == &r && r.answer.reason == Reason::ok;
}

template <class Took, class Append>
void append_list(StringInfo json, const char* field, const GroupRequest* requests, int count, Took took, Append append) {
  appendStringInfo(json, "\"%s\": [", field);
  bool first = true;
  for (int i = 0; i < count; ++i) {
    if (!took(requests[i])) continue;
    appendStringInfoString(json, first ? "{" : ", {");
    append(json, requests[i]);
    appendStringInfoChar(json, '}');
    first = false;
  }
  appendStringInfoChar(json, ']');
}

[[noreturn]] void raise_no_handle(const char* detail) {
  raise_invalid("this is not a handle of acquire_all", detail, "Pass the handle as it was answered.");
}

// One field of an object; nullptr if it is not there.
JsonbValue* field_of(const JsonbValue& object, const char* name) {
  return getKeyJsonValueFromContainer(object.val.binary.data, name, static_cast<int>(strlen(name)), nullptr);
}

JsonbValue* needed(const JsonbValue& object, const char* name, jbvType type) {
  JsonbValue* value = field_of(object, name);
  if (value == nullptr || value->type != type) raise_no_handle(psprintf("Its field \"%s\" is missing or of another type.", name));
  return value;
}

std::string_view text_field(const JsonbValue& object, const char* name) {
  const JsonbValue* value = needed(object, name, jbvString);
  return {value->val.string.val, static_cast<std::size_t>(value->val.string.len)};
}

int64 integer_field(const JsonbValue& object, const char* name) {
  return DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(needed(object, name, jbvNumeric)->val.numeric)));
}

double number_field(const JsonbValue& object, const char* name) {
  return DatumGetFloat8(DirectFunctionCall1(numeric_float8, NumericGetDatum(needed(object, name, jbvNumeric)->val.numeric)));
}

HeldSlot held_slot(const JsonbValue& object) {
  const int64 index = integer_field(object, "slot");
  if (index < 0 || index > max_slots) raise_no_handle("Its field \"slot\" is out of range.");
  return {text_field(object, "name"), text_field(object, "key"), static_cast<int32>(index), integer_field(object, "fence")};
}

GivenDecision taken_decision(const JsonbValue& object) {
  GivenDecision given;
  given.name = text_field(object, "name");
  given.key = text_field(object, "key");
  given.took = given.allowed = true;
  given.shown.cost = number_field(object, "cost");
  given.shown.remaining = number_field(object, "remaining");
  given.shown.decided_at = integer_field(object, "decided_at");
  given.shown.reset_after = field_of(object, "reset_after") == nullptr ? kNever : integer_field(object, "reset_after");
  if (field_of(object, "request_id") == nullptr) return given;
  const std::string_view id = text_field(object, "request_id");
  given.shown.request_id = *DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(pnstrdup(id.data(), id.size()))));
  return given;
}

// The objects of one list of the handle.
template <class Item>
int read_list(const JsonbValue& handle, const char* field, Item (*read)(const JsonbValue&), Item*& items) {
  JsonbContainer* list = needed(handle, field, jbvBinary)->val.binary.data;
  if (!JsonContainerIsArray(list)) raise_no_handle(psprintf("Its field \"%s\" is no list.", field));
  const uint32 count = JsonContainerSize(list);
  items = static_cast<Item*>(palloc(sizeof(Item) * (count + 1)));
  for (uint32 i = 0; i < count; ++i) {
    const JsonbValue* object = getIthJsonbValueFromContainer(list, i);
    if (object->type != jbvBinary || !JsonContainerIsObject(object->val.binary.data)) raise_no_handle("A list in it holds something else than objects.");
    items[i] = read(*object);
    check_name(items[i].name);
    check_key_length(items[i].key);
  }
  return static_cast<int>(count);
}

}  // namespace

Datum handle_datum(const GroupRequest* requests, int count) {
  StringInfoData json;
  initStringInfo(&json);
  appendStringInfoChar(&json, '{');
  append_list(&json, "slots", requests, count, took_a_slot, append_slot);
  appendStringInfoString(&json, ", ");
  append_list(&json, "rate_limits", requests, count, took_from_a_limit, append_limit);
  appendStringInfoChar(&json, '}');
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

Handle handle_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "handle");
  JsonbValue root{};
  root.type = jbvBinary;
  root.val.binary.data = &PG_GETARG_JSONB_P(position)->root;
  if (!JsonContainerIsObject(root.val.binary.data)) raise_no_handle("It is no JSON object.");
  Handle handle;
  handle.slot_count = read_list(root, "slots", held_slot, handle.slots);
  handle.decision_count = read_list(root, "rate_limits", taken_decision, handle.decisions);
  return handle;
}

}  // namespace taskq::pg
