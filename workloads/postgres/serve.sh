#!/bin/sh
# serve.sh ADDRESS PORT BUFFERS: runs PostgreSQL in the foreground.
set -eu
. "$TARE_WORK/server.sh"
chmod a+rx "$TARE_SCRATCH"
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
# The default of 100 connections is too few where those of the last load, at most 90, still close.
exec $own_ipc setpriv --reuid postgres --regid postgres --clear-groups -- postgres -D "$data" \
	-c listen_addresses="$1" -c port="$2" -c unix_socket_directories= -c max_connections=200 -c shared_buffers="$3MB"
