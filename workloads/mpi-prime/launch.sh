#!/bin/sh
# launch.sh SEES RANKS CORES PROGRAM ARGUMENT…: runs the program under mpirun, with CORES ranks if RANKS is 0. mpi-search's workload.yaml says why so.
# After a failure it prints the first informative line last, below mpirun's rules and advice.
sees=$1 ranks=$2 program=$4
[ "$ranks" != 0 ] || ranks=$3
shift 4
yields=
[ "$sees" = host ] || yields="--mca mpi_yield_when_idle 1"
cd "$TARE_SCRATCH" || exit 1
mpirun --allow-run-as-root -np "$ranks" --oversubscribe --bind-to none \
	--mca pml ob1 --mca btl self,sm --mca smsc ^cma $yields \
	--prtemca prte_tmpdir_base "$TARE_SCRATCH" \
	"$program" "$@" 2>said && exit 0
status=$?
cat said >&2
tr -d '\000' <said | grep -v '^[-[:space:]]*$' | head -n 1 >&2
exit "$status"
