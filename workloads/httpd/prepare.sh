#!/bin/sh
# prepare.sh MEGABYTES: a file f0000, f0001, … for each MiB, of lines of 16 bytes that are numbered through.
seq -f %015.0f 0 $(($1 * 65536 - 1)) | split -b 1048576 -a 4 -d - "$TARE_SCRATCH/f"
