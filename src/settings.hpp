// The settings, all under taskq_ratelimit.*; see docs/reference.md for what each does.
#pragma once

#include "taskq_ratelimit/micros.hpp"

namespace taskq::pg {

// How long a call waits for another transaction's row lock, in milliseconds; 0 waits for ever.
extern int lock_timeout;

// How many keys a keyed limit or reservation may have whose definition does not say; 0: any number.
extern int max_keys_per_limit;
extern int max_keys_per_reservation;

// The time of the test clock, if one is set.
extern bool test_clock_is_set;
extern ratelimit::Micros test_clock_time;

// The background worker: whether it sweeps, how often (in milliseconds), and which databases, as a list of identifiers or *.
extern bool sweep_is_on;
extern int sweep_interval;
extern char* sweep_databases;

// For how many limits and reservations of all databases decisions are counted; 0: not at all. Fixed when the server starts.
extern int stats_entries;

// Defines all settings. Call once, from _PG_init.
void define_settings();

}  // namespace taskq::pg
