#include "owner.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

Oid owner_of_tables() {
  HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(relations().limits));
  if (!HeapTupleIsValid(row)) elog(ERROR, "cache lookup failed for taskq.rate_limits");
  const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relowner;
  ReleaseSysCache(row);
  return owner;
}

}  // namespace

OwnerRun begin_as_owner() {
  OwnerRun run;
  GetUserIdAndSecContext(&run.caller, &run.security);
  SetUserIdAndSecContext(owner_of_tables(), run.security | SECURITY_LOCAL_USERID_CHANGE);
  run.settings = NewGUCNestLevel();
  set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
  SPI_connect();
  return run;
}

void end_as_owner(const OwnerRun& run) {
  SPI_finish();
  AtEOXact_GUC(true, run.settings);
  SetUserIdAndSecContext(run.caller, run.security);
}

uint64 execute(const char* statement, int count, Oid* types, Datum* values, const char* nulls) {
  SPIPlanPtr plan = SPI_prepare(statement, count, types);
  if (plan == nullptr) elog(ERROR, "statement on the limits' tables failed: %s", SPI_result_code_string(SPI_result));
  const int result = SPI_execute_snapshot(plan, values, nulls, GetLatestSnapshot(), InvalidSnapshot, false, true, 0);
  SPI_freeplan(plan);
  if (result < 0) elog(ERROR, "statement on the limits' tables failed: %s", SPI_result_code_string(result));
  return SPI_processed;
}

uint64 run_as_owner(const char* statement, int count, Oid* types, Datum* values, const char* nulls) {
  const OwnerRun run = begin_as_owner();
  const uint64 processed = execute(statement, count, types, values, nulls);
  end_as_owner(run);
  return processed;
}

}  // namespace taskq::pg
