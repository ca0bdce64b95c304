#!/bin/sh
# prepare.sh MEGABYTES: makes a file f0000, f0001, … for each MiB, with consecutively numbered lines of 16 bytes.
seq -f %015.0f 0 $(($1 * 65536 - 1)) | split -b 1048576 -a 4 -d - "$TARE_SCRATCH/f"
