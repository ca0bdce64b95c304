#!/bin/sh
# serve.sh ADDRESS PORT: runs the server in the foreground. The first guest copies the database to the folder that all guests share.
set -eu
if [ ! -e "$TARE_SHARED/data.mdb" ]; then
	own=$TARE_SHARED/data.$(cat /proc/sys/kernel/random/uuid)
	cp "$TARE_WORK/data.mdb" "$own"
	ln "$own" "$TARE_SHARED/data.mdb" || [ -e "$TARE_SHARED/data.mdb" ] # another guest may have been first
	rm "$own"
fi
# LMDB tells the processes that have a file open by their numbers, and two containers may give their servers the same one. The shell's number is
# the server's: if another guest has it, another shell tries.
if ! mkdir "$TARE_SHARED/process.$$" 2>/dev/null; then
	sh "$0" "$@"
	exit
fi
sed "s|FOLDER|$TARE_SHARED|" "$TARE_WORK/slapd.conf" >"$TARE_SCRATCH/slapd.conf"
exec slapd -d 0 -f "$TARE_SCRATCH/slapd.conf" -h "ldap://$1:$2/"
