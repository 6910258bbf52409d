#!/usr/bin/env bash
# A tour on a private server: every statement with its output, then eight clients against one limit.
# KEEP=1 leaves the server running and says how to reach it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=../test/tools/server.sh
. test/tools/server.sh
[ -n "${KEEP:-}" ] || trap server_stop EXIT
server_start
psql -X -q -f demo/tour.sql

clients=8 seconds=5 burst=100 rate=500
cat << TEXT

== Now for real: $clients clients hammer one limit for $seconds s. It holds $burst and refills $rate per second.
TEXT
psql -X -q -c "SELECT taskq.register_token_bucket('hammered', $burst, $rate)" > /dev/null
psql -X -q -c "CREATE TABLE grants (allowed boolean)" -c "CREATE TABLE runs (started timestamptz, ended timestamptz)"
script="$PGHOST/hammer.sql"
echo "SELECT taskq.allow('hammered');" > "$script"
psql -X -q -c "SELECT taskq.reset('hammered')" -c "INSERT INTO runs SELECT updated_at FROM taskq.peek('hammered')" > /dev/null
psql -X -q -c "ALTER TABLE grants SET UNLOGGED"
echo "INSERT INTO grants SELECT true WHERE taskq.allow('hammered');" > "$script"
pgbench -n -c $clients -j 2 -T $seconds -f "$script" postgres | grep -E 'number of transactions actually|^tps' | sed 's/^/pgbench: /'
psql -X -q -c "UPDATE runs SET ended = (SELECT updated_at FROM taskq.peek('hammered'))"
psql -X -c "\pset footer off" -c "SELECT (SELECT count(*) FROM grants) AS admitted,
    floor($burst + $rate * extract(epoch FROM ended - started)) AS \"exact bound: burst + rate * elapsed\",
    extract(epoch FROM ended - started) AS elapsed FROM runs" | sed 1d

if [ -n "${KEEP:-}" ]; then
  echo "The server is still running. Reach it with:"
  echo "  psql -h $PGHOST -U postgres postgres"
  echo "and stop it with:"
  echo "  $( [ "$(id -u)" -eq 0 ] && echo "runuser -u postgres -- ")$pg_bin/pg_ctl -D $server_folder/data stop && rm -rf $server_folder"
fi
