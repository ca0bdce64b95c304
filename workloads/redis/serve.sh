#!/bin/sh
# serve.sh ADDRESS PORT SYNC: runs Redis in the foreground.
set -eu
tar -C "$TARE_SCRATCH" -xf "$TARE_WORK/data.tar"
case $3 in
none) set -- "$1" "$2" --appendonly no ;;
*) set -- "$1" "$2" --appendonly yes --appendfsync "$3" ;;
esac
address=$1 port=$2
shift 2
exec redis-server --bind "$address" --port "$port" --protected-mode no --dir "$TARE_SCRATCH/data" --save "" "$@"
