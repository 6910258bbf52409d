#include "settings.hpp"

#include "epoch.hpp"
#include "parse_time.hpp"
#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

constinit int lock_timeout = 5000;
constinit int max_keys_per_limit = 100'000;
constinit int max_keys_per_reservation = 10'000;
constinit bool sweep_is_on = true;
constinit int sweep_interval = 30'000;
constinit char* sweep_databases = nullptr;
constinit int stats_entries = 1000;
constinit bool test_clock_is_set = false;
constinit Micros test_clock_time = 0;

namespace {

constinit char* test_clock_text = nullptr;

bool check_test_clock(char** text, void** extra, GucSource) {
  if ((*text)[0] == '\0') return true;
  auto* parsed = static_cast<Micros*>(malloc(sizeof(Micros)));  // the settings machinery frees `extra` with free()
  if (parsed == nullptr) return false;
  if (!parse_seconds(*text, *parsed)) {
    GUC_check_errdetail("The test clock is a number of seconds since 1970-01-01 with at most six decimals, or empty.");
    free(parsed);
    return false;
  }
  *parsed -= unix_epoch;
  *extra = parsed;
  return true;
}

void assign_test_clock(const char*, void* extra) {
  test_clock_is_set = extra != nullptr;
  test_clock_time = extra == nullptr ? 0 : *static_cast<Micros*>(extra);
}

bool check_databases(char** text, void**, GucSource) {
  char* copy = pstrdup(*text);
  List* names;
  const bool well_formed = SplitIdentifierString(copy, ',', &names);
  if (!well_formed) GUC_check_errdetail("The list is not one of names of databases, separated by commas: \"%s\".", *text);
  if (!well_formed) GUC_check_errhint("Write * for all databases, and names with capitals or special characters in double quotes.");
  list_free(names);
  pfree(copy);
  return well_formed;
}

void define_sweeper_settings() {
  DefineCustomBoolVariable("taskq_ratelimit.sweep", "Whether the background worker sweeps.",
                           "It runs only if shared_preload_libraries names taskq_ratelimit.", &sweep_is_on, true, PGC_SIGHUP, 0,
                           nullptr, nullptr, nullptr);
  DefineCustomIntVariable("taskq_ratelimit.sweep_interval", "How long the background worker waits between two sweeps of all databases.",
                          nullptr, &sweep_interval, 30'000, 10, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("taskq_ratelimit.sweep_databases", "The databases that the background worker sweeps.",
                             "Names separated by commas; * for all that accept connections and are no templates.",
                             &sweep_databases, "*", PGC_SIGHUP, GUC_LIST_INPUT, check_databases, nullptr, nullptr);
}

void define_stats_setting() {
  // A setting that takes a restart can be defined only while the server starts; without preloading it has no effect.
  const GucContext context = process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP;
  DefineCustomIntVariable("taskq_ratelimit.stats_entries", "For how many limits and reservations, of all databases, decisions are counted.",
                          "Only if shared_preload_libraries names taskq_ratelimit. 0 counts none.", &stats_entries, 1000, 0, 1'000'000,
                          context, 0, nullptr, nullptr, nullptr);
}

}  // namespace

void define_settings() {
  DefineCustomIntVariable("taskq_ratelimit.lock_timeout",
                          "How long a call waits for a bucket that another open transaction has used.",
                          "After that it is denied with reason lock_timeout and charged nothing. 0 waits for ever.",
                          &lock_timeout, 5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("taskq_ratelimit.max_keys_per_limit",
                          "How many keys a keyed rate limit may have that was registered without max_keys.",
                          "Beyond that a new key takes the place of a full one, or is denied with reason too_many_keys. 0 sets no bound.",
                          &max_keys_per_limit, 100'000, 0, INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("taskq_ratelimit.max_keys_per_reservation",
                          "How many keys a keyed reservation may have that was registered without max_keys.",
                          "Beyond that a new key takes the place of a free one, or is denied with reason too_many_keys. 0 sets no bound.",
                          &max_keys_per_reservation, 10'000, 0, INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("taskq_ratelimit.test_clock",
                             "Freezes the clock of all limits of this session, for tests.",
                             "Seconds since 1970-01-01 with at most six decimals; empty for the real clock.",
                             &test_clock_text, "", PGC_SUSET, GUC_NOT_IN_SAMPLE, check_test_clock, assign_test_clock,
                             nullptr);
  define_sweeper_settings();
  define_stats_setting();
  MarkGUCPrefixReserved("taskq_ratelimit");
}

}  // namespace taskq::pg
