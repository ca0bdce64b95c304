#!/bin/sh
# prepare.sh BYTES: the file that is served.
head -c "$1" /dev/zero | tr '\0' x >"$TARE_SCRATCH/file"
