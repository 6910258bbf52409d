// acquire_many: many decisions in one call, each on its own.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

struct Elements {
  Datum* values = nullptr;
  bool* nulls = nullptr;
  int count = 0;
};

struct Request {
  Call call;
  Answer answer;
  int position;
};

Elements list_arg(FunctionCallInfo fcinfo, int position, Oid type, int16 length, bool by_value, char align) {
  Elements list;
  if (PG_ARGISNULL(position)) return list;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(position);
  deconstruct_array(array, type, length, by_value, align, &list.values, &list.nulls, &list.count);
  return list;
}

Datum item_of(const Elements& list, int position, const char* argument) {
  const int index = list.count == 1 ? 0 : position;
  if (list.nulls[index]) raise_null(argument);
  return list.values[index];
}

void check_length(const Elements& list, int count, const char* argument) {
  if (list.count == 0 || list.count == 1 || list.count == count) return;
  raise_invalid("arrays differ in length", psprintf("%s has %d elements where %d are needed.", argument, list.count, count),
                "Give one element per decision, or a single one for all.");
}

// One order for all sessions, so that two calls with the same buckets cannot wait for each other.
int by_bucket(const void* left, const void* right) {
  const auto& a = *static_cast<const Request*>(left);
  const auto& b = *static_cast<const Request*>(right);
  if (a.call.definition.limit_id != b.call.definition.limit_id) return a.call.definition.limit_id < b.call.definition.limit_id ? -1 : 1;
  const int by_key = a.call.key.compare(b.call.key);
  return by_key != 0 ? by_key : a.position - b.position;
}

int by_position(const void* left, const void* right) {
  return static_cast<const Request*>(left)->position - static_cast<const Request*>(right)->position;
}

void fill(Request& item, int position, const Elements& names, const Elements& costs, const Elements& keys) {
  Call& call = item.call;
  item.position = position;
  call.name = as_string(item_of(names, position, "names"));
  check_name(call.name);
  call.amount = costs.count == 0 ? 1 : DatumGetFloat8(item_of(costs, position, "costs"));
  call.key = keys.count == 0 ? std::string_view{} : as_string(item_of(keys, position, "keys"));
  check_key_length(call.key);
  call.rule = CostRule::takes;
  resolve(call);
}

int longest(const Elements& a, const Elements& b, const Elements& c) {
  int most = a.count > b.count ? a.count : b.count;
  return most > c.count ? most : c.count;
}

}  // namespace

SQL_FUNCTION(taskq_acquire_many) {
  check_may_write("acquire_many");
  check_given(fcinfo, 0, "names");
  const Elements names = list_arg(fcinfo, 0, TEXTOID, -1, false, TYPALIGN_INT);
  const Elements costs = list_arg(fcinfo, 1, FLOAT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
  const Elements keys = list_arg(fcinfo, 2, TEXTOID, -1, false, TYPALIGN_INT);
  const int count = names.count == 0 ? 0 : longest(names, costs, keys);
  check_length(names, count, "names");
  check_length(costs, count, "costs");
  check_length(keys, count, "keys");

  InitMaterializedSRF(fcinfo, 0);
  auto* items = static_cast<Request*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Request) * static_cast<Size>(count + 1)));
  for (int i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    fill(items[i] = Request{}, i, names, costs, keys);
  }
  pg_qsort(items, static_cast<size_t>(count), sizeof(Request), by_bucket);
  for (int i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    items[i].answer = acquire_bucket(items[i].call);
  }
  pg_qsort(items, static_cast<size_t>(count), sizeof(Request), by_position);
  auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  check_decision_shape(result->setDesc);
  for (int i = 0; i < count; ++i) {
    HeapTuple row = decision_tuple(result->setDesc, items[i].call, counted(items[i].call, items[i].answer));
    tuplestore_puttuple(result->setResult, row);
    heap_freetuple(row);
  }
  return Datum{0};
}

}  // namespace taskq::pg
