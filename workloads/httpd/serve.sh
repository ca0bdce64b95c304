#!/bin/sh
# serve.sh ADDRESS PORT: runs Apache in the foreground.
set -eu
chmod a+rx "$TARE_SCRATCH" # its workers do not run as root
export ADDRESS="$1" PORT="$2"
exec /usr/sbin/apache2 -D FOREGROUND -f "$TARE_WORK/apache.conf"
