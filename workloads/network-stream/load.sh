#!/bin/sh
# load.sh ADDRESS PORT SECONDS CONNECTIONS BYTES: runs iperf3 and prints what arrived at its server as one line of JSON.
#
# The server runs one test at a time, and may still be ending the previous one. The script therefore retries for ten seconds.
tries=100
while :; do
	said=$(iperf3 --client "$1" --port "$2" --time "$3" --parallel "$4" --length "$5" --json)
	status=$?
	tries=$((tries - 1))
	case $status-$said in
	[1-9]*"server is busy"*) [ "$tries" -gt 0 ] && sleep 0.1 || break ;;
	*) break ;;
	esac
done
if [ "$status" != 0 ]; then
	echo "iperf3 failed (exit status $status): $(printf %s "$said" | jq -r '.error // "it gives no reason"' 2>&1 | head -n 1)" >&2
	exit 1
fi
printf %s "$said" | jq -c '.end | .sum_received as $r | {
	seconds_per_gigabyte: ($r.seconds * 1e9 / $r.bytes),
	gigabits_per_second: ($r.bytes * 8e-9 / $r.seconds),
	retransmits: (.sum_sent.retransmits // 0)}'
