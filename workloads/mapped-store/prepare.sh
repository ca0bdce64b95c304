#!/bin/sh
# prepare.sh RECORDS: links the program with the library in the root, and makes its records.
set -eu
gcc -O2 -Wall -o "$TARE_SCRATCH/store" "$TARE_WORK/store.c"
"$TARE_SCRATCH/store" make "$1" "$TARE_SCRATCH/records"
