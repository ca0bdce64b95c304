#!/bin/sh
# seed.sh SCALE: makes the database and leaves data.tar, from which a guest starts.
set -eu
. "$TARE_WORK/server.sh"
chmod a+rx "$TARE_SCRATCH"
install -d -o postgres -g postgres -m 700 "$data"
as_postgres initdb --pgdata="$data" --username=postgres --auth=trust --no-sync --locale-provider=builtin --locale=C.UTF-8 --encoding=UTF8 \
	>"$TARE_SCRATCH/log" 2>&1 || fail "the database cannot be made: $(tail -n 1 "$TARE_SCRATCH/log")"

# The load's user has rights only for its own tables, and may connect from any address.
cat >"$data/pg_hba.conf" <<'END'
local all postgres trust
local bench bench trust
host bench bench 0.0.0.0/0 trust
END
as_postgres pg_ctl start --pgdata="$data" --log="$data/log" --wait --silent \
	-o "-c listen_addresses= -c unix_socket_directories=$data -c fsync=off" ||
	fail "PostgreSQL does not start: $(tail -n 1 "$data/log")"
sql() { psql --no-psqlrc --quiet --host="$data" --username=postgres --command="$1" postgres; }
sql "CREATE USER bench"
sql "CREATE DATABASE bench OWNER bench"
pgbench --initialize --quiet --scale="$1" --host="$data" --username=bench bench >"$TARE_SCRATCH/log" 2>&1 ||
	fail "pgbench cannot make its tables: $(tail -n 1 "$TARE_SCRATCH/log")"
# Nothing remains to be done later: statistics exist, all pages are written, and no log file is kept.
psql --no-psqlrc --quiet --host="$data" --username=postgres --command="VACUUM (FREEZE, ANALYZE)" bench
sql "ALTER SYSTEM SET min_wal_size = '32MB'"
sql "SELECT pg_reload_conf()" >/dev/null
sql "CHECKPOINT"
as_postgres pg_ctl stop --pgdata="$data" --mode=fast --wait --silent
rm -f "$data/log" "$data/postgresql.auto.conf" "$TARE_SCRATCH/log"
tar --sort=name -C "$TARE_SCRATCH" -cf "$TARE_SCRATCH/data.tar" data
rm -r "$data"
