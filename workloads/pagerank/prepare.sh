#!/bin/sh
# prepare.sh MEGABYTES ITERATIONS: links the program with the library in the root, and makes its graph.
set -eu
gcc -O2 -Wall -o "$TARE_SCRATCH/pagerank" "$TARE_WORK/pagerank.c"
"$TARE_SCRATCH/pagerank" make "$1" "$2" "$TARE_SCRATCH/edges" "$TARE_SCRATCH/vertices" "$TARE_SCRATCH/answer"
