#!/bin/sh
# load.sh ADDRESS PORT ready | read | write | mixed [MEGABYTES LOOPS]: sends the job to FIO's server, and prints its figures as one line of JSON.
# ready is one operation without a file. The load fails if an operation fails or if FIO did other operations than requested.
fail() {
	echo "$1" >&2
	exit 1
}

job=$TARE_SCRATCH/job.fio said=$TARE_SCRATCH/said does=$3 bytes=4096
mapped() { # FOLDER MODE MEGABYTES LOOPS
	bytes=$(($3 * 1048576 * $4))
	what="ioengine=mmap
filename=$1/data
rw=$2
size=$3m
loops=$4
invalidate=0
randrepeat=0"
}
case $does in
ready)
	what="ioengine=null
rw=read
size=4k"
	does=read
	;;
read) mapped "$TARE_WORK" randread "$4" "$5" ;;
write) mapped "$TARE_SCRATCH" randwrite "$4" "$5" ;;
mixed) mapped "$TARE_SHARED" randrw "$4" "$5" ;;
esac
cat >"$job" <<END
[mapped]
thread
bs=4k
$what
END
fio "--client=ip:$1,$2" --output-format=json "$job" >"$said" 2>"$said.errors" ||
	fail "fio failed: $(cat "$said.errors" "$said" | grep -v '^$' | head -n 1 | cut -c1-200)"
# mean is the mean of reads and writes, weighted by their number. p99 is the larger of the two p99s, not that of all operations.
# operations_per_second is the sum. A job that only reads or only writes has that one's figures.
jq -ce --arg does "$does" --argjson bytes "$bytes" '.client_stats[0] as $job
	| ($job.read.io_bytes + $job.write.io_bytes) as $done
	| ($job.read.total_ios + $job.write.total_ios) as $ios
	| def of(f): (($job.read | f * .total_ios) + ($job.write | f * .total_ios)) / $ios;
	  if $job.error != 0 or $done != $bytes or ($does == "read" and $job.write.total_ios > 0) or ($does == "write" and $job.read.total_ios > 0)
	    or ($does == "mixed" and ($job.read.total_ios == 0 or $job.write.total_ios == 0))
	  then "error \($job.error), \($job.read.io_bytes) bytes read, \($job.write.io_bytes) written: must be \($bytes), without an error" | halt_error(1)
	  else {mean: (of(.lat_ns.mean) / 1e9), p99: (([$job.read, $job.write] | map(.clat_ns.percentile["99.000000"] // 0) | max) / 1e9),
	    operations_per_second: ($job.read.iops + $job.write.iops)} end' "$said" ||
	fail "fio did not do what was requested"
