#!/bin/bash
# serve.sh ADDRESS PORT CORES MEMORY SEES: MariaDB, and Apache with PHP in its processes, until one of them ends.
set -eu
. "$TARE_WORK/servers.sh"
address=$1 port=$2 cores=$3 memory=$4 sees=$5

[ "$memory" -ge 512 ] || fail "the instance has $memory MiB of memory, 512 are needed"
if [ "$sees" = host ]; then
	# Out of the box, whatever the instance: Debian's mpm_prefork.conf, and MariaDB's own 151 connections.
	connections='' processes=(5 5 10 150)
else
	# As many processes as the memory holds, 32 MiB each (one that has served every recorded page has about 10
	# of its own), 256 MiB left to MariaDB and the system; not more than Debian's 150, or than four for a core on large
	# instances. All of them from the start to the end.
	workers=$(((memory - 256) / 32))
	most=$((cores * 4 > 150 ? cores * 4 : 150))
	[ "$workers" -le "$most" ] || workers=$most
	connections=--max-connections=$((workers + 8)) processes=("$workers" "$workers" "$workers" "$workers")
fi

web='' database=''
trap 'kill $web $database 2>/dev/null || true' EXIT # if one ends, so does the other

chmod a+rx "$TARE_SCRATCH" # the servers do not run as root
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
start_database $connections
start_web "$address" "$port" "${processes[@]}"
# Whichever ends first. None should: the guest is killed when it has served.
status=0
wait -n "$database" "$web" || status=$?
if kill -0 "$database" 2>/dev/null; then
	cause=$(head -n 1 "$state/apache.log")
	fail "Apache has ended with status $status: ${cause:-$(tail -n 1 "$state/error.log")}"
fi
fail "MariaDB has ended with status $status: $(cause_of_database)"
