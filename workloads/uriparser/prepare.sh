#!/bin/sh
# prepare.sh MEGABYTES: the program, made against the library that it runs with, and its input.
set -eu
gcc -O2 -Wall -o "$TARE_SCRATCH/parse" "$TARE_WORK/parse.c" -luriparser
"$TARE_WORK/uris" make "$1" "$TARE_SCRATCH/lines"
