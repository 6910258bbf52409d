#!/usr/bin/env bash
# Ours beside SELECT 1 and the two shapes people write by hand, on a private server of this machine.
#
#   bench.sh [async] [sync] [log] [slots] [groups] [snapshot]      all sections without arguments
#
# ROUNDS (5), SECONDS_EACH (3) and CLIENTS (8) can be set. What is compared runs in turn, round by round; medians and ratios of medians
# are printed. Ratios are what to read: absolute figures change from machine to machine and from hour to hour.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=../test/tools/server.sh
. test/tools/server.sh
rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-3} clients=${CLIENTS:-8}
results=$(mktemp -d)
trap 'server_stop; rm -rf "$results"' EXIT

tps() { pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "bench/sql/$1.sql" postgres 2> /dev/null | sed -n 's/^tps = \([0-9]*\).*/\1/p'; }

# Runs the scripts in turn, after one unmeasured second each.
measure() {
  local script round
  for script in "$@"; do pgbench -n -M prepared -c "$clients" -j 2 -T 1 -f "bench/sql/$script.sql" postgres > /dev/null 2>&1; : > "$results/$script"; done
  for round in $(seq "$rounds"); do
    for script in "$@"; do tps "$script" >> "$results/$script"; done
  done
  for script in "$@"; do printf '  %-18s %8d per second   (%s)\n' "$script" "$(median "$script")" "$(sort -n "$results/$script" | tr '\n' ' ')"; done
}

median() { sort -n "$results/$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

better() { if [ "$(median "$1")" -ge "$(median "$2")" ]; then echo "$1"; else echo "$2"; fi; }

ratio() { # ours baseline goal-text
  printf '  %-50s %5.2f   %s\n' "$1 / $2" "$(echo "$(median "$1") $(median "$2")" | awk '{print $1 / $2}')" "$3"
}

begin() {
  server_start "synchronous_commit = $1" "max_wal_size = 4GB" "shared_buffers = 256MB"
  psql -qX -f bench/setup.sql > /dev/null
}

run_async() {
  echo "== $clients clients, synchronous_commit off, medians of $rounds rounds of $seconds s"
  begin off
  measure select_1 acquire_hot value_hot allow_hot upsert_hot for_update_hot acquire_keys allow_keys upsert_keys for_update_keys acquire_denied allow_denied
  local hot keys
  hot=$(better upsert_hot for_update_hot) keys=$(better upsert_keys for_update_keys)
  ratio acquire_hot "$hot" "goal 1.5"
  ratio value_hot "$hot" ""
  ratio allow_hot "$hot" ""
  ratio acquire_keys "$keys" "goal 1.3"
  ratio allow_keys "$keys" ""
  ratio acquire_denied select_1 "goal 0.6"
  ratio allow_denied select_1 ""
  server_stop
}

run_sync() {
  echo "== $clients clients, synchronous_commit on"
  begin on
  measure acquire_hot upsert_hot for_update_hot acquire_keys upsert_keys for_update_keys
  ratio acquire_hot "$(better upsert_hot for_update_hot)" "goal 1.0"
  ratio acquire_keys "$(better upsert_keys for_update_keys)" "goal 1.0"
  server_stop
}

run_log() {
  echo "== sliding window of style log: limit 100 and 1 000 000, the same pace, synchronous_commit off"
  begin off
  psql -qX -f bench/fill_log.sql
  measure log_100 log_1000000
  echo "  entries in the window of log_1000000: $(psql -qXAt -c "SELECT 1000000 - taskq.remaining('log_1000000')")"
  ratio log_100 log_1000000 "time at 1 000 000 over time at 100; goal at most 2"
  server_stop
}

run_slots() {
  echo "== acquire and release a slot of 10 and of 10 000, synchronous_commit off"
  begin off
  local before
  before=$(psql -qXAt -c "SELECT pg_relation_size('taskq.reservation_slots') / 8192")
  measure slots_10 slots_10000
  echo "  pages of reservation_slots: $before before, $(psql -qXAt -c "SELECT pg_relation_size('taskq.reservation_slots') / 8192") after"
  ratio slots_10 slots_10000 "time at 10 000 over time at 10; goal at most 2"
  server_stop
}

run_groups() {
  echo "== three limits in one call, synchronous_commit off"
  begin off
  measure acquire_keys group_3_keys three_calls_keys acquire_hot group_3_hot acquire_denied group_3_denied
  ratio group_3_keys acquire_keys "goal 0.5"
  ratio group_3_keys three_calls_keys "one call over three"
  ratio group_3_hot acquire_hot "goal 0.5"
  ratio group_3_denied acquire_denied ""
  server_stop
}

# Calls per second in the first and the last 5 of 40 s while one snapshot stays open.
under_old_snapshot() {
  psql -qX -c "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM taskq.rate_limits; SELECT pg_sleep(43)" > /dev/null &
  sleep 1
  pgbench -n -M prepared -c "$clients" -j 2 -T 40 -P 5 -f "bench/sql/$1.sql" postgres 2>&1 | sed -n 's/^progress: .*s, \([0-9]*\).* tps.*/\1/p' > "$results/$1"
  wait %%
  awk -v name="$1" 'NR == 1 {first = $1} {last = $1} END {printf "  %-18s first 5 s: %8d   last 5 s: %8d   left: %.2f\n", name, first, last, last / first}' "$results/$1"
}

run_snapshot() {
  echo "== one old snapshot held open for 40 s, hot key, synchronous_commit off (goal: at least 0.5 left)"
  begin off
  under_old_snapshot acquire_hot
  under_old_snapshot upsert_hot
  server_stop
}

for section in ${*:-async sync log slots groups snapshot}; do "run_$section"; done
