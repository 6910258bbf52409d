#include "actor_define.hpp"

#include "args.hpp"
#include "call.hpp"
#include "clock.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "reservations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr std::string_view keyed_prefix = "taskq:keyed:";
constexpr char separator = '\t';  // no name contains a control character

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

// One definer of a name at a time, until its transaction ends, as in define.cpp.
void lock_actor(std::string_view name) {
  const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()));
  LockDatabaseObject(relations().actors, hash, 0, ExclusiveLock);
}

ActorResource reference_of(ResourceKind kind, std::string_view text) {
  ActorResource resource{.kind = kind, .name = text};
  if (text.starts_with(keyed_prefix)) {
    text.remove_prefix(keyed_prefix.size());
    const std::size_t end = text.find(separator);
    if (end == std::string_view::npos) {
      raise_invalid("malformed keyed reference", psprintf("It is \"%s\".", shown(text)), "Make it with taskq.keyed(name, path).");
    }
    resource.name = {text.data(), end};
    resource.keyed = true;
    text.remove_prefix(end + 1);
    resource.key_path = DirectFunctionCall1(jsonpath_in, CStringGetDatum(pnstrdup(text.data(), text.size())));
  }
  check_name(resource.name);
  check_not_reserved(resource.name);
  return resource;
}

[[noreturn]] void raise_key_rule(const ActorResource& r) {
  const char* kind = r.kind == ResourceKind::reservation ? "reservation" : "rate limit";
  if (r.keyed) {
    raise_invalid(psprintf("%s \"%s\" takes no key", kind, shown(r.name)), psprintf("The reference has the path %s.", path_text(r)),
                  "Give its name alone.");
  }
  raise_invalid(psprintf("%s \"%s\" needs a key", kind, shown(r.name)), "It is keyed, and the reference says no path.",
                "Say where the payload has the key: taskq.keyed(name, '$.tenant_id').");
}

// Any key will do to tell whether one is taken.
void check_resource(const ActorResource& r) {
  const std::string_view key = r.keyed ? "key" : "";
  if (r.kind == ResourceKind::reservation) {
    if (slots_under(needed_reservation(r.name), key) == 0) raise_key_rule(r);
    return;
  }
  const Definition* limit = find_definition(r.name);
  if (limit == nullptr) raise_unknown(r.name);
  if (!takes_key(*limit, key)) raise_key_rule(r);
}

void check_resources(const Actor& actor) {
  if (actor.count > max_actor_resources) {
    raise_invalid(psprintf("an actor has at most %d limits and reservations", max_actor_resources), psprintf("It has %d.", actor.count),
                  "Name fewer.");
  }
  for (int i = 0; i < actor.count; ++i) check_resource(actor.resources[i]);
}

bool is_same(const ActorResource& a, const ActorResource& b) {
  if (a.kind != b.kind || a.name != b.name || a.keyed != b.keyed) return false;
  return !a.keyed || strcmp(path_text(a), path_text(b)) == 0;
}

bool is_same(const Actor& a, const Actor& b) {
  if (a.has_queue != b.has_queue || a.queue != b.queue || a.count != b.count) return false;
  for (int i = 0; i < a.count; ++i) {
    if (!is_same(a.resources[i], b.resources[i])) return false;
  }
  return true;
}

const char* list_text(const Actor& actor, ResourceKind kind) {
  StringInfoData text;
  initStringInfo(&text);
  for (int i = 0; i < actor.count; ++i) {
    const ActorResource& r = actor.resources[i];
    if (r.kind != kind) continue;
    appendStringInfo(&text, "%s%s%s", text.len > 0 ? ", " : "", shown(r.name), r.keyed ? psprintf(" by %s", path_text(r)) : "");
  }
  return text.len > 0 ? text.data : "none";
}

const char* definition_text(const Actor& actor) {
  return psprintf("queue %s, reservations %s, rate limits %s", actor.has_queue ? shown(actor.queue) : "none",
                  list_text(actor, ResourceKind::reservation), list_text(actor, ResourceKind::rate_limit));
}

[[noreturn]] void raise_other_definition(const Actor& wanted, const Actor& present) {
  ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("actor \"%s\" is registered with another definition", shown(wanted.name)),
                  errdetail("Registered: %s. Asked for: %s.", definition_text(present), definition_text(wanted)),
                  errhint("Register it with replace => true to change it.")));
}

struct Arrays {
  Datum names, paths;
};

// The resources of one kind, as text[] and jsonpath[].
Arrays arrays_of(const Actor& actor, ResourceKind kind) {
  const auto room = static_cast<Size>(actor.count + 1);
  auto* names = static_cast<Datum*>(palloc(sizeof(Datum) * room));
  auto* paths = static_cast<Datum*>(palloc(sizeof(Datum) * room));
  auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * room));
  int count = 0, first = 1;
  for (int i = 0; i < actor.count; ++i) {
    const ActorResource& r = actor.resources[i];
    if (r.kind != kind) continue;
    names[count] = text_datum(r.name);
    paths[count] = r.key_path;
    nulls[count++] = !r.keyed;
  }
  return {PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT)),
          PointerGetDatum(construct_md_array(paths, nulls, count > 0 ? 1 : 0, &count, &first, JSONPATHOID, -1, false, TYPALIGN_INT))};
}

void write(const char* statement, const Actor& actor) {
  const Arrays slots = arrays_of(actor, ResourceKind::reservation), limits = arrays_of(actor, ResourceKind::rate_limit);
  Oid types[] = {TEXTOID, TEXTOID, TEXTARRAYOID, JSONPATHARRAYOID, TEXTARRAYOID, JSONPATHARRAYOID, TIMESTAMPTZOID};
  Datum values[] = {text_datum(actor.name), text_datum(actor.queue), slots.names, slots.paths, limits.names, limits.paths,
                    TimestampTzGetDatum(clock_now())};
  const char nulls[] = {' ', actor.has_queue ? ' ' : 'n', ' ', ' ', ' ', ' ', ' '};
  run_as_owner(statement, 7, types, values, nulls);
}

constexpr const char* insertion =
    "INSERT INTO taskq.actors (actor, queue, reservations, reservation_keys, rate_limits, rate_limit_keys, changed_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)";
constexpr const char* change =
    "UPDATE taskq.actors SET queue = $2, reservations = $3, reservation_keys = $4, rate_limits = $5, rate_limit_keys = $6, "
    "changed_at = $7 WHERE actor = $1";

}  // namespace

Datum keyed_reference(std::string_view name, Datum path) {
  const char* text = DatumGetCString(DirectFunctionCall1(jsonpath_out, path));
  return CStringGetTextDatum(psprintf("%s%.*s%c%s", keyed_prefix.data(), static_cast<int>(name.size()), name.data(), separator, text));
}

void read_references(Actor& actor, ResourceKind kind, ArrayType* references) {
  Datum* values;
  bool* nulls;
  int count;
  deconstruct_array(references, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
  auto* resources = static_cast<ActorResource*>(palloc(sizeof(ActorResource) * static_cast<Size>(actor.count + count + 1)));
  for (int i = 0; i < actor.count; ++i) resources[i] = actor.resources[i];
  for (int i = 0; i < count; ++i) {
    if (nulls[i]) raise_null(kind == ResourceKind::reservation ? "reservations" : "rate_limits");
    resources[actor.count + i] = reference_of(kind, as_string(values[i]));
  }
  actor.resources = resources;
  actor.count += count;
}

bool define_actor(const Actor& wanted, bool replace) {
  check_resources(wanted);
  lock_actor(wanted.name);
  Actor present;
  const bool exists = find_actor(wanted.name, present);
  if (exists && is_same(wanted, present)) return false;
  if (exists && !replace) raise_other_definition(wanted, present);
  write(exists ? change : insertion, wanted);
  return true;
}

void drop_actor(std::string_view name) {
  lock_actor(name);
  Oid types[] = {TEXTOID};
  Datum values[] = {text_datum(name)};
  if (run_as_owner("DELETE FROM taskq.actors WHERE actor = $1", 1, types, values, nullptr) == 0) raise_unknown_actor(name);
}

}  // namespace taskq::pg
