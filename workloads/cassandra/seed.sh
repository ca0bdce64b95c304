#!/bin/bash
# seed.sh ROWS: makes data.tar, the data of a Cassandra with ROWS rows. It also makes Timer.class, and server.jsa and stress.jsa: archives of the
# classes that server and load have loaded, so every guest starts faster.
set -u
rows=$1
. "$TARE_WORK/server.sh"
. "$TARE_WORK/stress.sh"
. "$TARE_WORK/cql.sh"
cd "$TARE_SCRATCH" || exit 1
t=$(mktemp -d "${TMPDIR:-/tmp}/seed.XXXXXX") || exit 1
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$t"' EXIT

start() { # [JVM FLAG…]: starts the server and waits until it answers
	java "${jvm[@]}" "$@" org.apache.cassandra.service.CassandraDaemon >"$t/server" 2>&1 &
	server=$!
	local tries=0
	until (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do
		kill -0 "$server" 2>/dev/null && [ $((tries += 1)) -lt 3000 ] || fail "the server did not start: $(tail -n 1 "$t/server")"
		sleep 0.1
	done
}
stop() { # drains it, which moves everything from the commit log to data files
	kill "$server"
	wait "$server"
	server=
}
load() { # the kind of load and its arguments
	stress "$t" "${flags[@]}" -- "$@" -node 127.0.0.1 -port native=$port -rate threads=50 >"$t/load" 2>&1 &&
		grep -qx END "$t/load" && grep -q '^Total errors *: *0 ' "$t/load" ||
		fail "cassandra-stress failed: $(grep -E 'Exception|rror' "$t/load" | head -n 1)"
}

settle 127.0.0.1 9042 0 4096 periodic 0 host
configure
start
flags=()
load write n="$rows" cl=ONE no-warmup -pop "seq=1..$rows"
# Finishes all compactions, so no guest has to do them.
cql_open 127.0.0.1 $port 2>/dev/null || fail "the server does not answer"
tries=0
until [ "$(cql_number 'SELECT count(*) FROM system_views.sstable_tasks' 2>/dev/null)" = 0 ]; do
	[ $((tries += 1)) -lt 1200 ] || fail "its compactions did not end in time"
	sleep 1
done
exec 3>&-
stop
tar cf data.tar data || fail "data.tar cannot be written"

# Runs it once more as a study measures it, to load the same classes.
start -XX:ArchiveClassesAtExit="$PWD/server.jsa"
/bin/bash "$TARE_WORK/ready.sh" 127.0.0.1 $port || fail "a seeded row cannot be read"
flags=(-XX:ArchiveClassesAtExit="$PWD/stress.jsa")
load mixed "ratio(write=1,read=3)" n=1000 cl=ONE -pop "dist=uniform(1..$rows)" -errors retries=0 ignore -log interval=20ms hdrfile="$t/hdr"
stop
for made in data.tar server.jsa stress.jsa; do [ -s "$made" ] || fail "$made was not made: $(tail -n 1 "$t/server")"; done
# The compiler ships with Cassandra.
java -XX:-UsePerfData -cp "$TARE_WORK/ecj-3.33.0.jar" org.eclipse.jdt.internal.compiler.batch.Main -source 11 -target 11 -proc:none \
	-cp "$TARE_WORK/stress.jar" -d "$t" "$TARE_WORK/Timer.java" >"$t/compiler" 2>&1 &&
	mv "$t/org/apache/cassandra/stress/report/Timer.class" . || fail "Timer.java does not compile: $(head -n 5 "$t/compiler")"
find . -mindepth 1 -maxdepth 1 ! -name data.tar ! -name '*.jsa' ! -name Timer.class -exec rm -rf {} +
