#!/bin/sh
# serve.sh ADDRESS PORT DOES: FIO's server. What is written to is a copy of the guest's own.
set -eu
[ "$3" = read ] || cp "$TARE_WORK/data" "$TARE_SCRATCH/data"
exec fio "--server=ip:$1,$2"
