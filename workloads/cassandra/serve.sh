#!/bin/bash
# serve.sh ADDRESS PORT CORES MEMORY SYNC MEMTABLE SEES: Cassandra in the foreground, with the seeded data.
set -u
. "$TARE_WORK/server.sh"
settle "$@"
tar xf "$TARE_WORK/data.tar" -C "$TARE_SCRATCH" || fail "data.tar cannot be unpacked to $TARE_SCRATCH: is the disk full?"
configure
# The classes that the seeding run had loaded come from its archive, or not at all: a platform on which the JVM cannot map
# it would start in another way than the rest, so that is a failure and no slower start.
exec java "${jvm[@]}" -Xshare:on -XX:SharedArchiveFile="$TARE_WORK/server.jsa" org.apache.cassandra.service.CassandraDaemon
