#!/bin/bash
# load.sh ADDRESS PORT THREADS OPERATIONS RATE ROWS: runs cassandra-stress and prints its figures as one line of JSON.
#
# In the paper 100 users submit 1,000 operations within one second, a quarter of them writes. That is an open load of 1,000 operations a
# second. Each operation therefore has its time in a schedule, and is timed from then (stress's fixed=). An operation that waits for a
# free user counts as slow, as its sender sees it. If operations were timed from when they are really sent (throttle=), a stalled server
# would receive fewer requests and look good ("coordinated omission"). With RATE 0 the load is closed: each user sends
# the next operation after the answer, and operations are timed from when they are sent.
set -u
address=$1 port=$2 threads=$3 operations=$4 rate=$5 rows=$6

fail() { echo "cassandra-stress: $*" >&2; exit 1; }
t=$(mktemp -d "${TARE_SCRATCH:-/tmp}/load.XXXXXX") || exit 1
trap 'rm -rf "$t"' EXIT
. "$TARE_WORK/stress.sh"
. "$TARE_WORK/cql.sh"

# Prints how often the table of the rows was compacted. A compaction begins once flushes have written four data files.
compactions() {
	(exec 2>/dev/null
	cql_open "$address" "$port" &&
		cql_number "SELECT count(*) FROM system.compaction_history WHERE columnfamily_name = 'standard1' ALLOW FILTERING") ||
		fail "Cassandra does not say how often it has compacted the rows"
}
before=$(compactions) || exit 1

# Failed operations are counted and not repeated. Stress warms up with a quarter of the operations of each
# kind, which it does not count; this is its default. The figures come from its HDR histograms, because its text
# rounds to 0.1 ms.
limit= kind=st
[ "$rate" = 0 ] || limit=fixed=$rate/s kind=rt
stress "$t" -Xshare:on -XX:SharedArchiveFile="$TARE_WORK/stress.jsa" -- \
	mixed "ratio(write=1,read=3)" n="$operations" cl=ONE -pop "dist=uniform(1..$rows)" -errors retries=0 ignore \
	-node "$address" -port native="$port" -rate threads="$threads" $limit -log interval=20ms hdrfile="$t/hdr" \
	>"$t/out" 2>&1
status=$?
# Prints why an operation failed, "Operation x0 on key(s) [...]: REASON", or what ended the run.
cause() {
	{
		sed -n 's/^Operation x[0-9]* on key(s) [^]]*\]: //p' "$t/out"
		grep -E '^[A-Za-z_.]+(Exception|Error)\b' "$t/out"
		tail -n 1 "$t/out"
	} | head -n 1 | cut -c1-300
}
[ "$status" = 0 ] && grep -qx END "$t/out" || fail "did not finish (exit status $status): $(cause)"

# The lines look like "Total errors : 1,000 [READ: …".
said() { sed -n "s/^$1 *: *\([0-9,.]*\).*/\1/p" "$t/out" | tail -n 1 | tr -d ,; }
errors=$(said 'Total errors') answered=$(said 'Total partitions') rounded=$(said 'Latency mean')
[ -n "$errors" ] && [ -n "$answered" ] && [ -n "$rounded" ] || fail "its output lacks a total of operations or errors, or the mean"

# One histogram holds all kinds of operations, in microseconds.
sed -n "/^[#\"]/p; s/^Tag=[A-Z]*-$kind,//p" "$t/hdr" |
	java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -cp "$TARE_WORK/HdrHistogram-2.1.12.jar" \
		org.HdrHistogram.HistogramLogProcessor -outputValueUnitRatio 1000 -percentilesOutputTicksPerHalf 1000 >"$t/figures" ||
	fail "its histograms cannot be read: $(tail -n 1 "$t/figures")"
# The span from the first interval with operations to the end of the last, each of 20 ms. Stress's own rate includes its start.
span=$(awk -F, -v kind="-$kind\$" '$1 ~ kind { if (from == "") from = $2; if ($2 + $3 > to) to = $2 + $3 } END { print to - from }' "$t/hdr")

after=$(compactions) || exit 1
awk -v compactions=$((after - before)) -v operations="$operations" -v answered="$answered" -v errors="$errors" -v rounded="$rounded" -v span="$span" '
	function lacks(what) { print "cassandra-stress: its output has no " what > "/dev/stderr"; bad = 1; exit 1 }
	# Rows of the distribution: value, share of operations up to it, their number, …
	NF >= 3 && $1 ~ /^[0-9.]+$/ && $2 ~ /^[01]\.[0-9]+$/ { value[++n] = $1; upto[n] = $3 }
	/^#\[Mean/ { gsub(/,/, ""); mean = $3 }
	/^#\[Max/ { sub(/\]/, ""); count = $NF }
	function percentile(share,   i) { for (i = 1; i <= n; i++) if (upto[i] >= share * count) return value[i] / 1e6; lacks("percentile") }
	END {
		if (bad) exit 1
		if (mean == "" || count == "" || n == 0) lacks("latencies")
		# Failed operations may be missing from the timed ones.
		if (count > operations || count + errors < operations || answered + errors != operations) {
			printf "cassandra-stress: requested %d operations, but it timed %d, got %d answers, and %d failed\n",
				operations, count, answered, errors > "/dev/stderr"
			exit 1
		}
		off = mean / 1000 - rounded
		if (off < 0) off = -off
		if (off > 0.06 + rounded / 500) {
			printf "cassandra-stress: the mean of its histograms is %.3f ms, but its text says %.1f ms\n", mean / 1000, rounded > "/dev/stderr"
			exit 1
		}
		if (span <= 0) lacks("duration")
		printf "{\"mean\":%.9g,\"p50\":%.9g,\"p95\":%.9g,\"p99\":%.9g,\"errors\":%d,\"requests\":%d,\"requests_per_second\":%.6g,\"compactions\":%d}\n",
			mean / 1e6, percentile(0.5), percentile(0.95), percentile(0.99), errors, operations, operations / span, compactions
	}' "$t/figures" >"$t/json" || exit 1
[ "$errors" = 0 ] || echo "$errors of $operations operations failed: $(cause)" >&2
cat "$t/json"
