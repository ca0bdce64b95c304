#!/bin/sh
# prepare.sh MEGABYTES: links the program with the library in the root, and makes its input.
set -eu
gcc -O2 -Wall -o "$TARE_SCRATCH/parse" "$TARE_WORK/parse.c" -luriparser
"$TARE_WORK/uris" make "$1" "$TARE_SCRATCH/lines"
