#!/bin/sh
# serve.sh ADDRESS PORT BUFFERS: runs PostgreSQL in the foreground.
set -eu
. "$TARE_WORK/server.sh"
chmod a+rx "$TARE_SCRATCH"
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
# PostgreSQL marks its data as in use with a shared memory segment, which remains after a kill. On bare metal it would remain on the host, so
# PostgreSQL gets its own IPC namespace if that is permitted. A container does not permit it, but already has one.
alone=
if unshare --ipc true 2>/dev/null; then alone="unshare --ipc"; fi
exec $alone setpriv --reuid postgres --regid postgres --clear-groups -- postgres -D "$data" \
	-c listen_addresses="$1" -c port="$2" -c unix_socket_directories= -c shared_buffers="$3MB"
