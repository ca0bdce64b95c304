#!/bin/sh
# seed.sh KEYS BYTES: makes the keys that redis-benchmark requests. It leaves data.tar, with the keys as a snapshot and as an append-only file.
set -eu
cd "$TARE_SCRATCH"
fail() {
	echo "redis: $*" >&2
	exit 1
}
mkdir data
socket=$TARE_SCRATCH/socket
redis-server --port 0 --unixsocket "$socket" --save "" --appendonly no --dir "$TARE_SCRATCH/data" --daemonize yes \
	--logfile "$TARE_SCRATCH/log" --pidfile "$TARE_SCRATCH/pid"
ask() { redis-cli -e -s "$socket" "$@"; }
tries=600
until ask ping >/dev/null 2>&1; do
	[ $((tries -= 1)) -gt 0 ] || fail "Redis does not answer: $(tail -n 1 log)"
	sleep 0.1
done
awk -v keys="$1" -v bytes="$2" 'BEGIN {
	value = sprintf("%" bytes "s", ""); gsub(/ /, "x", value)
	for (i = 0; i < keys; i++) printf "SET key:%012d %s\r\n", i, value
}' | ask --pipe >pipe 2>&1 || fail "the keys cannot be made: $(tail -n 1 pipe)"
[ "$(ask dbsize)" = "$1" ] || fail "only $(ask dbsize) of $1 keys exist: $(tail -n 1 pipe)"
# Changing appendonly writes the file again. A server with appendonly on starts from it.
ask config set appendonly yes >/dev/null
until ask info persistence | grep -q '^aof_rewrite_in_progress:0' && [ -e data/appendonlydir/appendonly.aof.manifest ] &&
	ask info persistence | grep -q '^aof_rewrite_scheduled:0'; do
	[ $((tries -= 1)) -gt 0 ] || fail "the append-only file is not written: $(tail -n 1 log)"
	sleep 0.1
done
ask config set appendonly no >/dev/null
ask save >/dev/null
ask shutdown nosave || true
while [ -e pid ]; do # Redis removes it when it ends
	[ $((tries -= 1)) -gt 0 ] || fail "Redis does not end: $(tail -n 1 log)"
	sleep 0.1
done
tar --sort=name -cf data.tar data
rm -rf data log pipe socket
