# A private PostgreSQL server in a temporary folder, on a UNIX socket. To be sourced at the top of the tree; sets PGHOST, PGUSER and PGDATABASE.
#
#   server_start [line for postgresql.conf ...]   makes and starts it
#   server_stop                                   stops it and deletes the folder
#   as_server_user COMMAND ...                    runs a command as the user who may run the server

pg_bin="$("${PG_CONFIG:-pg_config}" --bindir)"

# A user who may not install into PostgreSQL uses the copy of it that install-extension makes.
pg_copy=
if [ ! -w "$("${PG_CONFIG:-pg_config}" --pkglibdir)" ]; then
  pg_copy="$PWD/build/server"
  pg_bin="$pg_copy$pg_bin"
fi

# initdb and postgres refuse root: then they run as postgres.
as_server_user() {
  if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

server_start() {
  server_folder="$(mktemp -d /tmp/taskq_ratelimit.XXXXXX)"
  [ "$(id -u)" -ne 0 ] || chown postgres "$server_folder"
  as_server_user "$pg_bin/initdb" --no-sync -A trust -U postgres -E UTF8 --locale=C.UTF-8 -D "$server_folder/data" > "$server_folder/initdb.log" \
    || { cat "$server_folder/initdb.log" >&2; return 1; }
  {
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$server_folder'"
    echo "max_connections = 100"
    echo "shared_buffers = 128MB"
    echo "logging_collector = off"
    printf '%s\n' "$@"
  } | as_server_user tee -a "$server_folder/data/postgresql.conf" > /dev/null
  as_server_user "$pg_bin/pg_ctl" -D "$server_folder/data" -l "$server_folder/server.log" -w start > /dev/null \
    || { cat "$server_folder/server.log" >&2; return 1; }
  export PGHOST="$server_folder" PGUSER=postgres PGDATABASE=postgres
  unset PGPORT PGPASSWORD PGSERVICE
}

server_stop() {
  [ -n "${server_folder:-}" ] || return 0
  as_server_user "$pg_bin/pg_ctl" -D "$server_folder/data" -m immediate stop > /dev/null 2>&1 || true
  rm -rf "$server_folder"
  server_folder=
}
