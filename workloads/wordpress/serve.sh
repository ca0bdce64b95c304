#!/bin/bash
# serve.sh ADDRESS PORT CORES MEMORY SEES: runs MariaDB, and Apache with PHP in its processes, until one of them ends.
set -eu
. "$TARE_WORK/servers.sh"
address=$1 port=$2 cores=$3 memory=$4 sees=$5

[ "$memory" -ge 512 ] || fail "an instance with $memory MiB of memory is too small: must be at least 512"
if [ "$sees" = host ]; then
	# The defaults for every instance: Debian's mpm_prefork.conf, and MariaDB's 151 connections.
	connections='' processes=(5 5 10 150)
else
	# As many processes as the memory holds, 32 MiB each, after 256 MiB for MariaDB and the system. (A process that has served every recorded page
	# has about 10 MiB of its own.) At most Debian's 150, or four for each core on large
	# instances. All of them run from the start to the end.
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
# Waits for the first that ends. None should end before the guest is killed.
status=0
wait -n "$database" "$web" || status=$?
if kill -0 "$database" 2>/dev/null; then
	cause=$(head -n 1 "$state/apache.log")
	fail "Apache ended with status $status: ${cause:-$(tail -n 1 "$state/error.log")}"
fi
fail "MariaDB ended with status $status: $(cause_of_database)"
