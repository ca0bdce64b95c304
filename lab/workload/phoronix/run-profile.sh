#!/bin/sh
# run-profile.sh CORES PROGRAM CHOICE… runs the profile's program once with the arguments of the choices (arguments.tsv), as the Phoronix Test Suite does.
# The program runs in the folder where it was installed, as the run before left it. The script prints the program's log, or its output if it has no
# log, and then the seconds that the program took.
cores=$1 program=$2 home=/tmp/installed
shift 2
if [ ! -d "$home" ]; then # the guest's first trial
	mkdir "$home.part" && tar -xf "$TARE_WORK/installed.tar" -C "$home.part" && mv "$home.part" "$home" || exit 1
fi
cd "$home" || exit 1
OS_ARCH=$(uname -m)
# A profile's programs and scripts print numbers with a point, and read UTF-8, whatever the image's locale.
export LC_ALL=C.UTF-8 HOME="$home" LOG_FILE="$TARE_SCRATCH/log" NUM_CPU_CORES="$cores" NUM_CPU_JOBS="$cores" OS_TYPE=Linux OS_ARCH
words() {
	awk -F '\t' -v choice="$1" '$1 == choice { for (i = 2; i <= NF; i++) print $i }' "$TARE_WORK/arguments.tsv"
}
all=$(
	words before
	for choice in "$@"; do words "$choice"; done
	words after
)
rm -f test-exit-status
[ ! -f pre.sh ] || sh pre.sh </dev/null >/dev/null 2>&1
set -f
IFS='
'
# One argument a line.
# shellcheck disable=SC2086
set -- $all
unset IFS
set +f
start=$(date +%s.%N)
"./$program" "$@" </dev/null >"$TARE_SCRATCH/said" 2>&1
status=$?
end=$(date +%s.%N)
[ ! -f test-exit-status ] || read -r status <test-exit-status
[ ! -f post.sh ] || sh post.sh </dev/null >/dev/null 2>&1
[ -s "$LOG_FILE" ] || LOG_FILE=$TARE_SCRATCH/said
cat "$LOG_FILE"
[ "$status" = 0 ] || {
	echo "$program ended with exit status $status: $(grep -v '^[[:space:]]*$' "$LOG_FILE" | tail -n 1 | cut -c1-200)" >&2
	exit 1
}
echo
echo "$start $end" | awk '{ printf "seconds: %.6f\n", $2 - $1 }'
