#!/bin/sh
# load.sh ADDRESS PORT OPERATION REQUESTS CONNECTIONS PIPELINE BYTES KEYS: runs redis-benchmark and prints its figures as one line of JSON.
said=$(redis-benchmark -h "$1" -p "$2" -t "$3" -n "$4" -c "$5" -P "$6" -d "$7" -r "$8" --csv 2>&1)
status=$?
if [ "$status" != 0 ]; then
	echo "redis-benchmark failed (exit status $status): $(printf '%s\n' "$said" | tail -n 1 | cut -c1-200)" >&2
	exit 1
fi
# "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
printf '%s\n' "$said" | tail -n 1 | sed 's/^"[^"]*",//; s/"//g' | awk -F, '
NF != 7 || $1 + 0 <= 0 { print "redis-benchmark printed no figures: " $0 >"/dev/stderr"; exit 1 }
{ printf "{\"requests_per_second\":%.3f,\"mean\":%.9f,\"p50\":%.9f,\"p95\":%.9f,\"p99\":%.9f}\n", $1, $2/1e3, $4/1e3, $5/1e3, $6/1e3 }'
