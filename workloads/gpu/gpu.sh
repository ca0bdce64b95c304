#!/bin/sh
# gpu.sh APPLICATION DRIVER CACHE CORES SIZE TIMES. What a driver has compiled it keeps in a folder of the trial: empty, as a fresh container has it, or filled by a
# run before the one that is measured.
set -eu
mkdir "$TARE_SCRATCH/cache"
export POCL_CACHE_DIR="$TARE_SCRATCH/cache" CUDA_CACHE_PATH="$TARE_SCRATCH/cache"
if [ "$3" = warm ]; then
	"$TARE_WORK/gpu" "$1" "$2" "$4" "$5" 1 "$TARE_WORK" >/dev/null
fi
exec "$TARE_WORK/gpu" "$1" "$2" "$4" "$5" "$6" "$TARE_WORK"
