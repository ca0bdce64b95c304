#!/bin/sh
# stream.sh SECONDS BYTES: runs an iperf3 server and its client, and prints what arrived as one line of JSON.
set -u
mkfifo "$TARE_SCRATCH/server" || exit 1
iperf3 --server --one-off --bind 127.0.0.1 --forceflush >"$TARE_SCRATCH/server" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
exec 3<"$TARE_SCRATCH/server" # stays open, because writing to a closed pipe kills the writer
while read -r line <&3; do
	case $line in
	*listening*) break ;;
	*error*) echo "$line" >&2 ;;
	esac
done
said=$(iperf3 --client 127.0.0.1 --time "$1" --length "$2" --json)
status=$?
if [ "$status" != 0 ]; then
	echo "iperf3 failed (exit status $status): $(printf %s "$said" | jq -r '.error // "it gives no reason"' 2>&1 | head -n 1)" >&2
	exit 1
fi
printf %s "$said" | jq -c '.end.sum_received | {seconds_per_gigabyte: (.seconds * 1e9 / .bytes), gigabits_per_second: (.bytes * 8e-9 / .seconds)}'
