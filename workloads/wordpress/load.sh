#!/bin/sh
# load.sh ADDRESS PORT USERS PAGES THINK [RECORDING]: runs the measured load. It prints the result as one line of JSON, and why requests failed
# on stderr. k6 sends no reports, does not listen on a port, and writes only its log.
set -u
log=$TARE_SCRATCH/k6.log
rm -f "$log"
result=$(HOME=$TARE_SCRATCH TMPDIR=$TARE_SCRATCH "$TARE_WORK/k6" run --quiet --no-color --no-usage-report --address= --log-output="file=$log" \
	--env ADDRESS="$1" --env PORT="$2" --env USERS="$3" --env PAGES="$4" --env THINK="$5" --env RECORDING="${6:-$TARE_WORK/recording.json}" \
	"$TARE_WORK/load.js")
status=$?
if [ "$status" != 0 ]; then
	echo "k6 failed (exit status $status): $(tail -n 1 "$log")" >&2
	exit 1
fi
[ -n "$result" ] || exit 1 # no request got a right answer; k6 has printed why
echo "$result"
