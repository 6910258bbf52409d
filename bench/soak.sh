#!/usr/bin/env bash
# Do the tables of slots stay small? Clients take, renew and release slots on a private server, with autovacuum as it comes; once a minute the
# pages of taskq.reservation_slots and of its indexes are printed.
#
#   soak.sh       MINUTES (10), CLIENTS (8) and RATE (leases per second, 0: as fast as they go) can be set.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=../test/tools/server.sh
. test/tools/server.sh
minutes=${MINUTES:-10} clients=${CLIENTS:-8} rate=${RATE:-0}
folder=$(mktemp -d)
trap 'server_stop; rm -rf "$folder"' EXIT

cat > "$folder/lease.sql" << 'SQL'
SELECT slot_index, fence FROM taskq.acquire_slot('soak', NULL, 'aaaaaaaa-0000-4000-8000-000000000000') \gset
SELECT 1 / (taskq.renew_slot('soak', :slot_index, fence => :fence) IS NOT NULL)::int;
SELECT 1 / taskq.release_slot('soak', :slot_index, fence => :fence)::int;
SQL

pages() {
  psql -qXAt -F ' ' -v minute="$1" << 'SQL'
SELECT format('minute %s', :'minute'), (SELECT string_agg(format('%s %s pages', c.relname, pg_relation_size(c.oid) / 8192), ', ' ORDER BY c.relkind DESC)
    FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE c.oid = 'taskq.reservation_slots'::regclass OR i.indrelid = 'taskq.reservation_slots'::regclass),
  format('updates %s (%s HOT), autovacuums %s', n_tup_upd, n_tup_hot_upd, autovacuum_count)
FROM pg_stat_user_tables WHERE relid = 'taskq.reservation_slots'::regclass;
SQL
}

server_start
psql -qXAt -c 'CREATE EXTENSION taskq_ratelimit' -c "SELECT taskq.register_reservation('soak', $clients, '1 minute')" > /dev/null
pages 0
options=()
[ "$rate" -eq 0 ] || options=(-R "$rate")
pgbench -n -M prepared -c "$clients" -j 2 -T $((minutes * 60 + 5)) "${options[@]}" -f "$folder/lease.sql" postgres > "$folder/out" 2>&1 &
client=$!
for minute in $(seq "$minutes"); do
  sleep 60
  pages "$minute"
done
wait "$client" || { cat "$folder/out" >&2; exit 1; }
grep -E '^number of (transactions actually|failed)|^tps' "$folder/out"
