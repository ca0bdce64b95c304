#!/bin/sh
# prepare.sh MEGABYTES: the file, 16 bytes a line.
seq -f %015.0f 1 $(($1 * 65536)) >"$TARE_SCRATCH/data"
