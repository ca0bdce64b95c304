#!/bin/sh
# load.sh ADDRESS PORT SECONDS CONNECTIONS BYTES: iperf3, and what arrived at its server as one line of JSON.
said=$(iperf3 --client "$1" --port "$2" --time "$3" --parallel "$4" --length "$5" --json)
status=$?
if [ "$status" != 0 ]; then
	echo "iperf3 has failed (exit status $status): $(printf %s "$said" | jq -r '.error // "it does not say why"' 2>&1 | head -n 1)" >&2
	exit 1
fi
printf %s "$said" | jq -c '.end | .sum_received as $r | {
	seconds_per_gigabyte: ($r.seconds * 1e9 / $r.bytes),
	gigabits_per_second: ($r.bytes * 8e-9 / $r.seconds),
	retransmits: (.sum_sent.retransmits // 0)}'
