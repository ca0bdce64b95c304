#!/bin/sh
# hpcc.sh N SHARE NB RANKS CORES MEMORY MINUTES: runs HPCC on a problem of order N with RANKS processes. If N is 0, the order is the multiple of
# NB whose matrix takes SHARE per cent of MEMORY MiB, or a smaller one that processes of 10 Gflop/s each solve in MINUTES. If RANKS is 0, there are CORES processes, but at least two. It prints HPCC's summary and the chosen values.
# It fails if HPCC's own checks fail.
n=$1 share=$2 nb=$3 ranks=$4 memory=$6 minutes=$7
[ "$ranks" != 0 ] || ranks=$(($5 > 1 ? $5 : 2)) # messages need two processes
fail() {
	echo "$1" >&2
	exit 1
}
cd "$TARE_SCRATCH" || exit 1
[ "$n" != 0 ] || n=$(awk -v share="$share" -v memory="$memory" -v nb="$nb" -v ranks="$ranks" -v minutes="$minutes" 'BEGIN {
	n = sqrt(share / 100 * memory * 1048576 / 8)
	most = (1.5 * minutes * 60 * ranks * 1e10) ^ (1 / 3) # HPL makes 2/3 n^3 operations
	if (n > most) n = most
	n = int(n / nb) * nb
	print n < nb ? nb : n
}')
# Chooses the grid of processes that is closest to a square and at least as wide as high.
p=$(awk -v ranks="$ranks" 'BEGIN { for (p = int(sqrt(ranks)); ranks % p; p--); print p }')
q=$((ranks / p))

cat >hpccinf.txt <<END
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$n           Ns
1            # of NBs
$nb          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$p           Ps
$q           Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
END
rm -f hpccoutf.txt # HPCC appends to it
# One thread for each process, because HPCC runs its processes in parallel.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
mpirun --allow-run-as-root -np "$ranks" --oversubscribe --bind-to none --mca pml ob1 --mca btl self,sm --mca smsc ^cma \
	--prtemca prte_tmpdir_base "$TARE_SCRATCH" hpcc >said 2>&1 ||
	fail "hpcc failed with exit status $?: $(tr -d '\000' <said | grep -v '^[-[:space:]]*$' | head -n 1)"
sh "$TARE_WORK/check.sh" hpccoutf.txt "$n" "$ranks" || exit 1

sed -n '/^Begin of Summary section/,/^End of Summary section/p' hpccoutf.txt | grep =
cache=$(cat /sys/devices/system/cpu/cpu0/cache/index3/size 2>/dev/null || cat /sys/devices/system/cpu/cpu0/cache/index2/size 2>/dev/null)
awk -F= -v cache="${cache%K}" '$1 == "STREAM_VectorSize" { if (cache > 0) print "stream_array_of_cache=" $2 * 8 / (cache * 1024) }' hpccoutf.txt
