// The launcher: every taskq_ratelimit.sweep_interval, one database after the other. It has no database of its own and no
// transaction while it waits, so it keeps neither DROP DATABASE nor vacuum waiting. What goes wrong in a database ends the worker
// there; what goes wrong here ends the launcher, and the postmaster starts it again.
#include "sweeper.hpp"

#include "settings.hpp"

#include "pg.hpp"

extern "C" PGDLLEXPORT void taskq_sweeper_launcher(Datum);

namespace taskq::pg {

namespace {

constexpr int seconds_before_restart = 5;

struct Database {
  Oid id;
  NameData name;
};

bool is_wanted(const FormData_pg_database& database, List* names) {
  if (!database.datallowconn || database.datistemplate) return false;
  ListCell* cell;
  foreach (cell, names) {
    const char* name = static_cast<const char*>(lfirst(cell));
    if (strcmp(name, "*") == 0 || strcmp(name, NameStr(database.datname)) == 0) return true;
  }
  return false;
}

void add_wanted(List** found, List* names, MemoryContext context) {
  Relation table = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(table, 0, nullptr);
  while (HeapTuple row = heap_getnext(scan, ForwardScanDirection)) {
    const auto* database = reinterpret_cast<Form_pg_database>(GETSTRUCT(row));
    if (!is_wanted(*database, names)) continue;
    const MemoryContext before = MemoryContextSwitchTo(context);
    auto* copy = static_cast<Database*>(palloc(sizeof(Database)));
    *copy = {database->oid, database->datname};
    *found = lappend(*found, copy);
    MemoryContextSwitchTo(before);
  }
  table_endscan(scan);
  table_close(table, AccessShareLock);
}

// The databases to sweep, in the current memory context.
List* wanted_databases() {
  const MemoryContext context = CurrentMemoryContext;
  List *names = NIL, *found = NIL;
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  SplitIdentifierString(pstrdup(sweep_databases), ',', &names);
  add_wanted(&found, names, context);
  PopActiveSnapshot();
  CommitTransactionCommand();
  MemoryContextSwitchTo(context);
  return found;
}

BackgroundWorker worker_named(const char* type, const char* function) {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  strlcpy(worker.bgw_library_name, extension_name, BGW_MAXLEN);
  strlcpy(worker.bgw_function_name, function, BGW_MAXLEN);
  strlcpy(worker.bgw_name, type, BGW_MAXLEN);
  strlcpy(worker.bgw_type, type, BGW_MAXLEN);
  return worker;
}

// False if no more workers can be had now.
bool sweep_database(const Database& database) {
  BackgroundWorker worker = worker_named("taskq_ratelimit sweeper", "taskq_sweeper_database");
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_main_arg = ObjectIdGetDatum(database.id);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle;
  if (!RegisterDynamicBackgroundWorker(&worker, &handle)) return false;
  pgstat_report_activity(STATE_RUNNING, psprintf("sweeping database %s", quote_identifier(NameStr(database.name))));
  WaitForBackgroundWorkerShutdown(handle);
  return true;
}

void sweep_all() {
  ListCell* cell;
  foreach (cell, wanted_databases()) {
    const auto* database = static_cast<const Database*>(lfirst(cell));
    CHECK_FOR_INTERRUPTS();
    if (ConfigReloadPending) return;  // the rest may not be wanted any more
    if (sweep_database(*database)) continue;
    ereport(LOG, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                  errmsg("database \"%s\" is not swept: no background worker is free", NameStr(database->name)),
                  errdetail("All of max_worker_processes = %d are in use.", max_worker_processes),
                  errhint("Raise max_worker_processes; the next attempt comes in %d ms.", sweep_interval)));
    return;
  }
}

// Until it is time for the next round: after the interval, or at once if the settings have been reloaded.
void rest() {
  pgstat_report_activity(STATE_IDLE, sweep_is_on ? "waiting for the next sweep" : "switched off by taskq_ratelimit.sweep");
  for (;;) {
    if (ConfigReloadPending) {
      ConfigReloadPending = false;
      ProcessConfigFile(PGC_SIGHUP);
      return;
    }
    const int event = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, sweep_interval, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    if (event & WL_TIMEOUT) return;
  }
}

}  // namespace

void register_sweeper() {
  if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade) return;
  BackgroundWorker launcher = worker_named("taskq_ratelimit launcher", "taskq_sweeper_launcher");
  launcher.bgw_restart_time = seconds_before_restart;
  RegisterBackgroundWorker(&launcher);
}

}  // namespace taskq::pg

void taskq_sweeper_launcher(Datum) {
  using namespace taskq::pg;
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  SetConfigOption("application_name", MyBgworkerEntry->bgw_type, PGC_USERSET, PGC_S_OVERRIDE);
  MemoryContext round = AllocSetContextCreateInternal(TopMemoryContext, "taskq_ratelimit launcher", ALLOCSET_DEFAULT_SIZES);
  for (;;) {
    MemoryContextSwitchTo(round);
    if (sweep_is_on) sweep_all();
    MemoryContextReset(round);
    rest();
  }
}
