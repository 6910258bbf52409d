#include "actors.hpp"

#include "args.hpp"
#include "errors.hpp"
#include "relations.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

// As in the SQL script.
enum ActorColumn : AttrNumber { c_actor = 1, c_queue, c_reservations, c_reservation_keys, c_rate_limits, c_rate_limit_keys };

struct Elements {
  Datum* values;
  bool* nulls;
  int count;
};

// A copy: the row it stands in goes away.
Elements elements_of(const TableRow& row, AttrNumber column, Oid type) {
  Elements elements;
  ArrayType* array = DatumGetArrayTypePCopy(row.datum(column));
  deconstruct_array(array, type, -1, false, TYPALIGN_INT, &elements.values, &elements.nulls, &elements.count);
  return elements;
}

void append(Actor& actor, ResourceKind kind, const Elements& names, const Elements& keys) {
  for (int i = 0; i < names.count; ++i) {
    ActorResource& resource = actor.resources[actor.count++];
    resource = {.kind = kind, .name = as_string(names.values[i]), .keyed = !keys.nulls[i], .key_path = keys.values[i]};
  }
}

void read(Actor& actor, const TableRow& row) {
  actor.has_queue = !row.is_null(c_queue);
  if (actor.has_queue) {
    const std::string_view queue = row.string(c_queue);
    actor.queue = {pnstrdup(queue.data(), queue.size()), queue.size()};
  }
  const Elements reservations = elements_of(row, c_reservations, TEXTOID), limits = elements_of(row, c_rate_limits, TEXTOID);
  const Elements reservation_keys = elements_of(row, c_reservation_keys, JSONPATHOID);
  const Elements limit_keys = elements_of(row, c_rate_limit_keys, JSONPATHOID);
  actor.resources = static_cast<ActorResource*>(palloc(sizeof(ActorResource) * static_cast<Size>(reservations.count + limits.count + 1)));
  append(actor, ResourceKind::reservation, reservations, reservation_keys);
  actor.reservations = actor.count;
  append(actor, ResourceKind::rate_limit, limits, limit_keys);
}

}  // namespace

bool find_actor(std::string_view name, Actor& actor) {
  const Relations& ours = relations();
  actor = Actor{};
  actor.name = name;
  Relation heap = table_open(ours.actors, AccessShareLock);
  Relation index = index_open(ours.actors_key, AccessShareLock);
  ScanKeyData key;
  ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID, F_TEXTEQ,
                         PointerGetDatum(cstring_to_text_with_len(name.data(), static_cast<int>(name.size()))));
  const bool found = with_row(heap, index, &key, 1, [&](const TableRow& row) { read(actor, row); });
  index_close(index, AccessShareLock);
  table_close(heap, AccessShareLock);
  return found;
}

Actor needed_actor(std::string_view name) {
  Actor actor;
  if (!find_actor(name, actor)) raise_unknown_actor(name);
  return actor;
}

void raise_unknown_actor(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("actor \"%s\" does not exist", shown(name)),
                  errdetail("No actor of this name is registered."),
                  errhint("Register it with taskq.register_actor(), or look into taskq.actors.")));
}

const char* path_text(const ActorResource& resource) {
  return DatumGetCString(DirectFunctionCall1(jsonpath_out, resource.key_path));
}

}  // namespace taskq::pg
