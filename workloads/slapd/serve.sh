#!/bin/sh
# serve.sh ADDRESS PORT: runs the server in the foreground. The first guest copies the database to the folder that all guests share.
set -eu
if [ ! -e "$TARE_SHARED/data.mdb" ]; then
	own=$TARE_SHARED/data.$(cat /proc/sys/kernel/random/uuid)
	cp "$TARE_WORK/data.mdb" "$own"
	ln "$own" "$TARE_SHARED/data.mdb" || [ -e "$TARE_SHARED/data.mdb" ] # another guest may have been first
	rm "$own"
fi
# LMDB distinguishes the processes that have a file open by their process IDs, and servers in two containers may have the same ID. exec keeps the
# shell's ID for the server. If another guest uses this ID, a new shell tries again with another one.
if ! mkdir "$TARE_SHARED/process.$$"; then
	[ -d "$TARE_SHARED/process.$$" ] || exit 1
	sh "$0" "$@"
	exit
fi
sed "s|FOLDER|$TARE_SHARED|" "$TARE_WORK/slapd.conf" >"$TARE_SCRATCH/slapd.conf"
# slapd keeps a record for each file that it may open, and some engines permit a billion.
ulimit -n 1024
exec slapd -d 0 -f "$TARE_SCRATCH/slapd.conf" -h "ldap://$1:$2/"
