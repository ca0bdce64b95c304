#!/bin/sh
# serve.sh ADDRESS PORT DOES: runs FIO's server. For writes it makes the guest's own copy of the file. For mixed, the first guest copies the file to
# the folder that all guests share.
set -eu
case $3 in
write) cp "$TARE_WORK/data" "$TARE_SCRATCH/data" ;;
mixed)
	if [ ! -e "$TARE_SHARED/data" ]; then
		own=$TARE_SHARED/data.$(cat /proc/sys/kernel/random/uuid)
		cp "$TARE_WORK/data" "$own"
		ln "$own" "$TARE_SHARED/data" || [ -e "$TARE_SHARED/data" ] # another guest may have been first
		rm "$own"
	fi
	;;
esac
exec fio "--server=ip:$1,$2"
