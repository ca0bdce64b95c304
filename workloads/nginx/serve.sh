#!/bin/sh
# serve.sh ADDRESS PORT CORES SEES: runs nginx in the foreground.
set -eu
workers=auto
[ "$4" = host ] || workers=$3
chmod a+rx "$TARE_SCRATCH" # its workers do not run as root
sed -e "s|@scratch@|$TARE_SCRATCH|; s|@work@|$TARE_WORK|; s|@listen@|$1:$2|; s|@workers@|$workers|" "$TARE_WORK/nginx.conf" >"$TARE_SCRATCH/nginx.conf"
exec /usr/sbin/nginx -e "$TARE_SCRATCH/error.log" -c "$TARE_SCRATCH/nginx.conf"
