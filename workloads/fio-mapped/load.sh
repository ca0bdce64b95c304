#!/bin/sh
# load.sh ADDRESS PORT ready | read | write [MEGABYTES LOOPS]: sends the job to FIO's server, and prints its figures as one line of JSON.
# ready is one operation without a file. The load fails if an operation fails or if FIO did other operations than requested.
fail() {
	echo "$1" >&2
	exit 1
}

job=$TARE_SCRATCH/job.fio said=$TARE_SCRATCH/said does=$3 bytes=4096
case $does in
ready)
	what="ioengine=null
rw=read
size=4k"
	does=read
	;;
*)
	folder=$TARE_WORK
	[ "$does" = read ] || folder=$TARE_SCRATCH
	bytes=$(($4 * 1048576 * $5))
	what="ioengine=mmap
filename=$folder/data
rw=rand$does
size=$4m
loops=$5
invalidate=0
randrepeat=0"
	;;
esac
cat >"$job" <<END
[mapped]
thread
bs=4k
$what
END
fio "--client=ip:$1,$2" --output-format=json "$job" >"$said" 2>"$said.errors" ||
	fail "fio failed: $(cat "$said.errors" "$said" | grep -v '^$' | head -n 1 | cut -c1-200)"
jq -ce --arg does "$does" --argjson bytes "$bytes" '.client_stats[0] | . as $job | .[$does]
	| if $job.error != 0 or .io_bytes != $bytes then "error \($job.error), \(.io_bytes) bytes: must be \($bytes) without an error" | halt_error(1)
	  else {mean: (.lat_ns.mean / 1e9), p99: ((.clat_ns.percentile["99.000000"] // 0) / 1e9), operations_per_second: .iops} end' "$said" ||
	fail "fio did not do what was requested"
