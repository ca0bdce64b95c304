#!/bin/sh
# check.sh OUTPUT N RANKS: whether HPCC's output is whole, is of what was asked for, and every check of its own has been passed.
output=$1
fail() {
	echo "$1" >&2
	exit 1
}
[ -s "$output" ] || fail "hpcc wrote no results"
grep -q '^End of Summary section' "$output" || fail "hpcc's results end before their summary does: $(tail -n 1 "$output" | cut -c1-100)"
is() {
	got=$(sed -n "s/^$1=//p" "$output" | tail -n 1)
	[ "$got" = "$2" ] || fail "hpcc's summary has $1=$got, and $2 was expected"
}
is Success 1
is HPL_N "$2"
is CommWorldProcs "$3"
# HPL and PTRANS count the tests whose residuals are small enough; the others say "failed", or of how many processes they found errors.
wrong=$(grep -E '^ *[1-9][0-9]* tests (completed and failed|skipped)|\(failed\)|Failed Validation|^Node\(s\) with error [^0]|\.\.\. FAILED' "$output" | head -n 1)
[ -z "$wrong" ] || fail "a check of HPCC's own has failed: $wrong"
[ "$(grep -cE '^ *[1-9][0-9]* tests completed and passed residual checks' "$output")" = 2 ] || fail "the residuals of HPL and of PTRANS are not both said to be small enough"
