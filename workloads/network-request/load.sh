#!/bin/sh
# load.sh ADDRESS PORT REQUESTS CONNECTIONS BYTES CONNECT: runs redis-benchmark and prints its figures as one line of JSON.
keep=1
[ "$6" = once ] || keep=0
message=$(head -c "$5" /dev/zero | tr '\0' x)
said=$(redis-benchmark -h "$1" -p "$2" -n "$3" -c "$4" -k "$keep" --csv ECHO "$message" 2>&1)
status=$?
if [ "$status" != 0 ]; then
	echo "redis-benchmark failed (exit status $status): $(printf '%s\n' "$said" | tail -n 1 | cut -c1-200)" >&2
	exit 1
fi
# "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
printf '%s\n' "$said" | tail -n 1 | sed 's/^"[^"]*",//; s/"//g' | awk -F, '
NF != 7 { print "redis-benchmark printed unknown columns: " $0 >"/dev/stderr"; exit 1 }
{ printf "{\"mean\":%.9f,\"p50\":%.9f,\"p95\":%.9f,\"p99\":%.9f,\"requests_per_second\":%.3f}\n", $2/1e3, $4/1e3, $5/1e3, $6/1e3, $1 }'
