#!/bin/sh
# gpu.sh APPLICATION DRIVER CACHE CORES SIZE TIMES BUILD LOADING RECORDS. What a driver has compiled it keeps in a folder of the trial: empty, as a fresh container has
# it, or filled by a run before the one that is measured. The last three are of the driver cuda.
set -eu
program=$TARE_WORK/gpu-opencl how=$2
if [ "$2" = cuda ]; then
	program=$TARE_WORK/gpu-cuda how=$7
	[ "$9" = off ] || how=$how,records
	CUDA_MODULE_LOADING=$(echo "$8" | tr a-z A-Z)
	export CUDA_MODULE_LOADING
fi
mkdir "$TARE_SCRATCH/cache"
export POCL_CACHE_DIR="$TARE_SCRATCH/cache" CUDA_CACHE_PATH="$TARE_SCRATCH/cache"
if [ "$3" = warm ]; then
	"$program" "$1" "$how" "$4" "$5" 1 "$TARE_WORK" >/dev/null
fi
exec "$program" "$1" "$how" "$4" "$5" "$6" "$TARE_WORK"
