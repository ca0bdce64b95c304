#!/bin/sh
# serve.sh ADDRESS PORT BUFFERS: runs PostgreSQL in the foreground.
set -eu
. "$TARE_WORK/server.sh"
chmod a+rx "$TARE_SCRATCH"
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
exec $own_ipc setpriv --reuid postgres --regid postgres --clear-groups -- postgres -D "$data" \
	-c listen_addresses="$1" -c port="$2" -c unix_socket_directories= -c shared_buffers="$3MB"
