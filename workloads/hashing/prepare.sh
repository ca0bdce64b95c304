#!/bin/sh
# prepare.sh MEGABYTES: links the program with the library in the root, and makes its input.
set -eu
gcc -O2 -Wall -o "$TARE_SCRATCH/hashing" "$TARE_WORK/hashing.c"
"$TARE_SCRATCH/hashing" make "$1" "$TARE_SCRATCH/keys"
