#!/bin/sh
# load.sh ADDRESS PORT ENTRIES OPERATIONS: searches one entry after another on one connection, and prints the mean time as one line of JSON. Each
# load has its own seed. The load fails if a search finds another entry than the requested one.
set -u
fail() {
	echo "slapd: $*" >&2
	exit 1
}
t=$(mktemp -d "${TARE_SCRATCH:-/tmp}/load.XXXXXX") || exit 1
trap 'rm -rf "$t"' EXIT
awk -v n="$3" -v m="$4" -v seed="$(od -An -N4 -tu4 /dev/urandom)" 'BEGIN {
	srand(seed); hot = int(n / 5)
	for (i = 0; i < m; i++) print rand() < 0.8 ? int(rand() * hot) : hot + int(rand() * (n - hot))
}' >"$t/keys"
began=$(date +%s%N)
ldapsearch -x -LLL -H "ldap://$1:$2" -b dc=tare -f "$t/keys" '(uid=%s)' uid description >"$t/found" 2>"$t/errors" ||
	fail "ldapsearch failed (exit status $?): $(tail -n 1 "$t/errors" | cut -c1-200)"
ended=$(date +%s%N)
sed -n 's/^uid: //p' "$t/found" | cmp -s - "$t/keys" || fail "the answers are not the requested entries"
awk -v took=$((ended - began)) -v m="$4" 'BEGIN { printf "{\"mean\":%.9f,\"operations_per_second\":%.3f}\n", took / 1e9 / m, m / (took / 1e9) }'
