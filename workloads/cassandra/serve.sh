#!/bin/bash
# serve.sh ADDRESS PORT CORES MEMORY SYNC MEMTABLE SEES: runs Cassandra in the foreground with the seeded data.
set -u
. "$TARE_WORK/server.sh"
settle "$@"
tar xf "$TARE_WORK/data.tar" -C "$TARE_SCRATCH" || fail "data.tar cannot be unpacked to $TARE_SCRATCH: is the disk full?"
configure
# The JVM must take the classes of the seeding run from their archive. On a platform where it cannot map the archive, the start
# would differ from other platforms. That is therefore a failure, not a slower start.
exec java "${jvm[@]}" -Xshare:on -XX:SharedArchiveFile="$TARE_WORK/server.jsa" org.apache.cassandra.service.CassandraDaemon
