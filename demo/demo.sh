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
psql -X -q -c "CREATE UNLOGGED TABLE grants (decided_at timestamptz)"
script="$PGHOST/hammer.sql"
echo "INSERT INTO grants SELECT decided_at FROM taskq.acquire('hammered') WHERE allowed;" > "$script"
pgbench -n -c $clients -j 2 -T $seconds -f "$script" postgres 2> /dev/null | sed -nE 's/^number of transactions actually processed: ([0-9]+).*/   \1 calls/p; s/^tps = ([0-9]+).*/   \1 calls per second/p'
psql -X -P footer=off << SQL
SELECT count(*) AS admitted, floor($burst + $rate * extract(epoch FROM max(decided_at) - min(decided_at))) AS "at most: burst + rate * elapsed",
       max(decided_at) - min(decided_at) AS elapsed
FROM grants;
SQL

if [ -n "${KEEP:-}" ]; then
  echo "The server is still running. Reach it with:"
  echo "  psql -h $PGHOST -U postgres postgres"
  echo "and stop it with:"
  echo "  $( [ "$(id -u)" -eq 0 ] && echo "runuser -u postgres -- env -C / ")$pg_bin/pg_ctl -D $server_folder/data stop && rm -rf $server_folder"
fi
