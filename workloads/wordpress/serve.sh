#!/bin/bash
# serve.sh ADDRESS PORT CORES MEMORY: MariaDB, and Apache with PHP in its processes, until one of them ends.
set -eu
. "$TARE_WORK/servers.sh"
address=$1 port=$2 cores=$3 memory=$4

# As many processes as the memory holds, 32 MiB each (a busy one has 15 to 20 of its own), 256 MiB left to
# MariaDB and the system; not more than Debian's 150, or than four for a core on large instances.
[ "$memory" -ge 512 ] || fail "the instance has $memory MiB of memory, 512 are needed"
workers=$(((memory - 256) / 32))
most=$((cores * 4 > 150 ? cores * 4 : 150))
[ "$workers" -le "$most" ] || workers=$most

chmod a+rx "$TARE_SCRATCH" # the servers do not run as root
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
start_database $((workers + 8))
start_web "$address" "$port" "$workers"
# Whichever ends first.
wait -n "$database" "$web" || true
if kill -0 "$database" 2>/dev/null; then
	fail "Apache has ended: $(head -n 1 "$state/apache.log")$(tail -n 1 "$state/error.log" 2>/dev/null)"
fi
fail "MariaDB has ended: $(grep -F '[ERROR]' "$state/mariadb.log" | head -n 1)"
