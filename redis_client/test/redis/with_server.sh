#!/usr/bin/env bash
# with_server.sh COMMAND...: runs it with a redis-server of its own, whose port is in TASKQ_TEST_REDIS_PORT. As root or not.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; rm -rf "$folder"' EXIT
for _ in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 20000))
  redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$folder" --enable-debug-command local > "$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    if [ "$(redis-cli -p "$port" ping 2> /dev/null)" = PONG ]; then
      export TASKQ_TEST_REDIS_PORT=$port
      "$@"
      exit
    fi
    kill -0 "$server" 2> /dev/null || break  # the port is taken
    sleep 0.1
  done
done
cat "$folder/log" >&2
exit 1
