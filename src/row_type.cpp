#include "row_type.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

TupleDesc row_type(FunctionCallInfo fcinfo, KnownType& known, int natts) {
  const Oid type = get_fn_expr_rettype(fcinfo->flinfo);
  if (known.columns != nullptr && known.type == type && known.generation == cache_generation) return known.columns;
  Oid found;
  TupleDesc columns;
  if (get_call_result_type(fcinfo, &found, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "return type must be a row type");
  check_columns(columns, natts);
  if (!OidIsValid(type) || found != type) return BlessTupleDesc(columns);
  if (known.columns != nullptr) FreeTupleDesc(known.columns);
  MemoryContext before = MemoryContextSwitchTo(CacheMemoryContext);
  known.columns = BlessTupleDesc(CreateTupleDescCopy(columns));
  MemoryContextSwitchTo(before);
  known.type = type;
  known.generation = cache_generation;
  watch_row_type(known.type);
  return known.columns;
}

}  // namespace taskq::pg
