#!/bin/sh
# serve.sh ADDRESS PORT BUFFERS: PostgreSQL, in the foreground.
set -eu
. "$TARE_WORK/server.sh"
chmod a+rx "$TARE_SCRATCH"
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
# PostgreSQL marks its data as in use by a shared memory segment, which stays when it is killed. On bare metal it would stay on the host, so
# it is in a namespace of its own where that is permitted. In a container it is not, and the container has one already.
alone=
if unshare --ipc true 2>/dev/null; then alone="unshare --ipc"; fi
exec $alone setpriv --reuid postgres --regid postgres --clear-groups -- postgres -D "$data" \
	-c listen_addresses="$1" -c port="$2" -c unix_socket_directories= -c shared_buffers="$3MB"
