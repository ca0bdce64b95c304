#!/bin/sh
# load.sh ADDRESS PORT USERS PAGES THINK [RECORDING]: runs the measured load. It prints the result as one line of JSON, and why requests failed
# on stderr. k6 sends no reports and does not listen on a port. It writes only to {scratch}.
# If TARE_REQUESTS names a file, load.sh writes there when each request began and ended, and which requests belong to one page.
set -u
log=$TARE_SCRATCH/k6.log
samples=$TARE_SCRATCH/k6.csv
rm -f "$log" "$samples"
if [ -n "${TARE_REQUESTS:-}" ]; then
	export K6_OUT="csv=$samples" K6_CSV_TIME_FORMAT=unix_micro K6_SYSTEM_TAGS=vu,group,check
fi
result=$(HOME=$TARE_SCRATCH TMPDIR=$TARE_SCRATCH "$TARE_WORK/k6" run --quiet --no-color --no-usage-report --address= --log-output="file=$log" \
	--env ADDRESS="$1" --env PORT="$2" --env USERS="$3" --env PAGES="$4" --env THINK="$5" --env RECORDING="${6:-$TARE_WORK/recording.json}" \
	"$TARE_WORK/load.js")
status=$?
if [ "$status" != 0 ]; then
	echo "k6 failed (exit status $status): $(tail -n 1 "$log")" >&2
	exit 1
fi
[ -n "$result" ] || exit 1 # no request got a right answer; k6 has printed why
if [ -n "${TARE_REQUESTS:-}" ]; then
	# The columns are metric, end time in µs, value in ms, …, and last the user's number. k6 writes `clock` before and after each page, then
	# `response` if the whole page was right.
	awk -F, -v OFS=' ' '
		BEGIN { print "realtime" }
		{ user = $NF }
		$1 == "clock" { if (inside[user] = !inside[user]) n[user] = 0 }
		$1 == "http_req_duration" { end[user, ++n[user]] = $2; took[user, n[user]] = $3 }
		$1 == "http_req_blocked" { took[user, n[user]] += $3 }
		$1 == "response" {
			page++
			for (i = 1; i <= n[user]; i++)
				printf "%d %.0f000 %.0f000\n", page, end[user, i] - 1000 * took[user, i], end[user, i]
		}' "$samples" >"$TARE_REQUESTS" || exit 1
fi
echo "$result"
