#!/bin/sh
# build.sh: the program, once for each language that it speaks to devices. Neither needs a device or its driver to be there.
set -eu
cd "$TARE_WORK"
applications="lud.c stencil.c particles.c lenet.c level0.c level1.c"
gcc -O2 -o "$TARE_SCRATCH/gpu-opencl" main.c opencl.c $applications -lOpenCL -lm
gcc -O2 -o "$TARE_SCRATCH/gpu-cuda" main.c cuda.c records.c $applications -ldl -lm
