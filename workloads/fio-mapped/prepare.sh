#!/bin/sh
# prepare.sh MEGABYTES: makes the file, with 16 bytes in each line.
seq -f %015.0f 1 $(($1 * 65536)) >"$TARE_SCRATCH/data"
