#!/bin/sh
# gpu.sh APPLICATION DRIVER CACHE CORES SIZE TIMES BUILD. What a driver has compiled it keeps in a folder of the trial: empty, as a fresh container has it, or filled by a
# run before the one that is measured.
set -eu
case $2 in
cuda*)
	program=$TARE_WORK/gpu-cuda how=${7%_eager}
	[ "$2" = cuda_unrecorded ] || how=$how,records
	CUDA_MODULE_LOADING=LAZY
	[ "$7" = "${7%_eager}" ] || CUDA_MODULE_LOADING=EAGER
	export CUDA_MODULE_LOADING
	;;
*)
	program=$TARE_WORK/gpu-opencl how=$2
	if [ "$7" != source ]; then
		echo "gpu: build=$7 is only for driver=cuda: use build=source with driver=$2" >&2
		exit 1
	fi
	;;
esac
mkdir "$TARE_SCRATCH/cache"
export POCL_CACHE_DIR="$TARE_SCRATCH/cache" CUDA_CACHE_PATH="$TARE_SCRATCH/cache"
if [ "$3" = warm ]; then
	"$program" "$1" "$how" "$4" "$5" 1 "$TARE_WORK" >/dev/null
fi
exec "$program" "$1" "$how" "$4" "$5" "$6" "$TARE_WORK"
