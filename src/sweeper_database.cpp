// Sweeping one database, in a worker of its own that ends afterwards. Whatever is raised here ends it: the server logs it, and the
// launcher goes on with the next database.
#include "sweeper.hpp"

#include "upkeep.hpp"

#include "pg.hpp"

extern "C" PGDLLEXPORT void taskq_sweeper_database(Datum database);

namespace taskq::pg {

namespace {

constexpr const char* sweep_statement = "SELECT * FROM taskq.sweep()";

// What ALTER DATABASE or ALTER SYSTEM may have set otherwise. A sweep that is lost in a crash is done again: nobody waits for the disk.
void use_own_settings() {
  constexpr const char* settings[][2] = {{"search_path", "pg_catalog, pg_temp"}, {"statement_timeout", "0"}, {"lock_timeout", "0"},
                                         {"idle_in_transaction_session_timeout", "0"}, {"default_transaction_read_only", "off"},
                                         {"default_transaction_isolation", "read committed"}, {"synchronous_commit", "off"}};
  for (const auto& [name, value] : settings) SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
  SetConfigOption("application_name", MyBgworkerEntry->bgw_type, PGC_USERSET, PGC_S_OVERRIDE);
}

void tell_database(void* name) { errcontext("background sweep of database \"%s\"", static_cast<const char*>(name)); }

// Somebody who wants to drop, rename or copy the database waits for us to go. Until the transaction ends this keeps them from starting.
bool database_is_wanted_otherwise() {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
  return LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL;
}

// True if some kind of row was deleted up to the bound, so that there may be more. Whatever columns this version's sweep() has.
bool sweep_batch() {
  SPI_connect();
  const int result = SPI_execute(sweep_statement, false, 1);
  if (result != SPI_OK_SELECT || SPI_processed != 1) elog(ERROR, "taskq.sweep() failed: %s", SPI_result_code_string(result));
  bool more = false, null;
  TupleDesc columns = SPI_tuptable->tupdesc;
  for (int i = 1; i <= columns->natts; ++i) {
    if (SPI_gettypeid(columns, i) != INT8OID) continue;
    const Datum deleted = SPI_getbinval(SPI_tuptable->vals[0], columns, i, &null);
    more |= !null && DatumGetInt64(deleted) >= most_per_sweep;
  }
  SPI_finish();
  return more;
}

// One transaction. True if it should be followed by another.
bool sweep_once() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  bool more = false;
  if (!database_is_wanted_otherwise() && OidIsValid(get_extension_oid(extension_name, true))) {
    pgstat_report_activity(STATE_RUNNING, sweep_statement);
    more = sweep_batch();
  }
  PopActiveSnapshot();
  CommitTransactionCommand();
  pgstat_report_stat(true);
  pgstat_report_activity(STATE_IDLE, nullptr);
  return more;
}

}  // namespace

}  // namespace taskq::pg

void taskq_sweeper_database(Datum database) {
  using namespace taskq::pg;
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
  use_own_settings();
  StartTransactionCommand();
  char* name = MemoryContextStrdup(TopMemoryContext, get_database_name(MyDatabaseId));
  CommitTransactionCommand();
  ErrorContextCallback context{.previous = error_context_stack, .callback = tell_database, .arg = name};
  error_context_stack = &context;
  while (sweep_once()) CHECK_FOR_INTERRUPTS();
  error_context_stack = context.previous;
}
