#!/bin/sh
# load.sh ADDRESS PORT TRANSACTION CLIENTS SECONDS [RATE]: runs pgbench and prints its figures as one line of JSON. It logs the time of each
# transaction, so percentiles cover all of them.
set -u
export PATH="/usr/lib/postgresql/17/bin:$PATH" LC_ALL=C
fail() {
	echo "pgbench: $*" >&2
	exit 1
}
case $3 in
tpcb) script=tpcb-like ;;
simple) script=simple-update ;;
select) script=select-only ;;
*) fail "unknown transaction $3" ;;
esac
t=$(mktemp -d "${TARE_SCRATCH:-/tmp}/load.XXXXXX") || exit 1
trap 'rm -rf "$t"' EXIT
# pgbench's time runs while its clients connect. On a busy host none may be left for transactions, so each further try has twice as much.
for more in 1 2 4 8 16 32; do
	rm -f "$t"/log.*
	pgbench --host="$1" --port="$2" --username=bench --no-vacuum --builtin="$script" --client="$4" --time="$(($5 * more))" ${6:+--rate="$6"} \
		--log --log-prefix="$t/log" bench >"$t/out" 2>"$t/errors" ||
		fail "failed (exit status $?): $(tail -n 1 "$t/errors" | cut -c1-200)"
	rate=$(sed -n 's/^tps = \([0-9.]*\) .*/\1/p' "$t/out")
	[ -z "$rate" ] || break
done
[ -n "$rate" ] || fail "printed no rate: $(tail -n 1 "$t/out" | cut -c1-200)"
# A line has the client, the number of its transaction, and its time in microseconds, or a word if it failed.
cat "$t"/log.* | awk '{ print $3 }' | sort -n | awk -v rate="$rate" '
$1 !~ /^[0-9]+$/ { errors++; next }
{ took[++n] = $1 / 1e6; sum += took[n] }
function at(share, i) { i = int(n * share); if (i < n * share) i++; return took[i] }
END {
	if (errors) print errors " of " n + errors " transactions failed" >"/dev/stderr"
	if (!n) { print "pgbench: no transaction succeeded" >"/dev/stderr"; exit 1 }
	printf "{\"mean\":%.9f,\"p50\":%.9f,\"p95\":%.9f,\"p99\":%.9f,\"requests_per_second\":%.3f,\"errors\":%d,\"requests\":%d}\n",
		sum / n, at(0.5), at(0.95), at(0.99), rate, errors, n + errors
}'
