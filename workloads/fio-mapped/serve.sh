#!/bin/sh
# serve.sh ADDRESS PORT DOES: runs FIO's server. For writes it makes the guest's own copy of the file.
set -eu
[ "$3" = read ] || cp "$TARE_WORK/data" "$TARE_SCRATCH/data"
exec fio "--server=ip:$1,$2"
