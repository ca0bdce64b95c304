#!/bin/sh
# check.sh OUTPUT N RANKS: checks that HPCC's output is complete, belongs to the requested problem, and passed HPCC's own checks.
output=$1
fail() {
	echo "$1" >&2
	exit 1
}
[ -s "$output" ] || fail "hpcc wrote no results"
grep -q '^End of Summary section' "$output" || fail "hpcc's results end before their summary does: $(tail -n 1 "$output" | cut -c1-100)"
is() {
	got=$(sed -n "s/^$1=//p" "$output" | tail -n 1)
	[ "$got" = "$2" ] || fail "hpcc's summary has $1=$got: must be $2"
}
is Success 1
is HPL_N "$2"
is CommWorldProcs "$3"
# HPL and PTRANS count the tests with small enough residuals. The others print "failed", or the number of processes with errors.
wrong=$(grep -E '^ *[1-9][0-9]* tests (completed and failed|skipped)|\(failed\)|Failed Validation|^Node\(s\) with error [^0]|\.\.\. FAILED' "$output" | head -n 1)
[ -z "$wrong" ] || fail "HPCC's own check failed: $wrong"
[ "$(grep -cE '^ *[1-9][0-9]* tests completed and passed residual checks' "$output")" = 2 ] || fail "HPCC does not report small enough residuals for both HPL and PTRANS"
