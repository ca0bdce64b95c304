#!/bin/sh
# prepare.sh BYTES: makes the file to serve.
head -c "$1" /dev/zero | tr '\0' x >"$TARE_SCRATCH/file"
