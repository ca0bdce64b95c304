#!/bin/sh
# ior.sh API OPERATION ACCESS MEGABYTES TRANSFER RANKS CORES MEMORY SECONDS: prints one JSON line. workload.yaml describes the arguments.
api=$1 operation=$2 access=$3 megabytes=$4 transfer=$5 ranks=$6 seconds=${9:-0}
[ "$ranks" != 0 ] || ranks=$7
[ "$megabytes" != 0 ] || megabytes=$((2 * $8))
if [ "$transfer" = 0 ]; then
	transfer=1024
	[ "$access" = sequential ] || transfer=4
fi
each=$((megabytes / ranks))
file=$TARE_SCRATCH/ior.data
fail() {
	echo "$1" >&2
	exit 1
}
[ "$each" -gt 0 ] || fail "$megabytes MiB are too few for $ranks processes: must be at least 1 MiB each"
rm -f "$file"
# The shell keeps the programs' output, because a file could not hold it if the disk is full.
if [ "$api" = mpiio ]; then
	exec 3>&1
	said=$(mpirun --allow-run-as-root -np "$ranks" --oversubscribe --bind-to none --mca pml ob1 --mca btl self,sm --mca smsc ^cma \
		--prtemca prte_tmpdir_base "$TARE_SCRATCH" "$TARE_WORK/mpiio" "$operation" "$access" "$file" "$each" "$transfer" "$seconds" 2>&1 >&3)
	status=$?
	rm -f "$file"
	[ "$status" = 0 ] || fail "$(echo "$said" | grep -m 1 '^mpiio:' || echo "$said" | grep -v '^[-[:space:]]*$' | head -n 1)"
	exit 0
fi
direct=0 rw=$operation limit=
[ "$seconds" = 0 ] || limit=--runtime=$seconds
[ "$api" = posix ] || direct=1
[ "$access" = sequential ] || rw=rand$operation
# Writes in random order overwrite existing data. invalidate drops the file from the page cache first.
said=$(fio --name=ior --output-format=json --filename="$file" --rw="$rw" --direct="$direct" --ioengine=psync --bs="${transfer}k" --size="${each}m" --numjobs="$ranks" \
	--offset_increment="${each}m" --thread --group_reporting --invalidate=1 --overwrite="$([ "$rw" = randwrite ] && echo 1 || echo 0)" --end_fsync=1 --randrepeat=1 $limit 2>&1)
status=$?
rm -f "$file"
[ "$status" = 0 ] || fail "fio failed: $(echo "$said" | grep -v '^[[:space:]]*$' | head -n 1 | cut -c1-200)"
echo "$said" | sed -n '/^{/,$p' | jq -ce --arg does "$operation" --argjson bytes "$((each * ranks * 1048576))" --argjson limited "$([ "$seconds" = 0 ] && echo false || echo true)" '.jobs[0] | . as $job | .[$does]
	| if $job.error != 0 or .io_bytes > $bytes or .io_bytes < $bytes and ($limited | not) or .io_bytes == 0 then "fio: error \($job.error), \(.io_bytes) bytes: must be \($bytes) without an error" | halt_error(1)
	  else {operations_per_second: .iops, bandwidth: (.bw_bytes / 1e6), p50: (.clat_ns.percentile["50.000000"] / 1e9), p99: (.clat_ns.percentile["99.000000"] / 1e9)} end'
