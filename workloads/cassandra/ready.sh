#!/bin/bash
# ready.sh ADDRESS PORT: whether Cassandra answers a query for a seeded row, asked in its native protocol (version 4). No JVM: this is
# run again and again.
set -u
[ $# = 3 ] || exec timeout 60 /bin/bash "$0" "$1" "$2" within
exec 2>/dev/null
exec 3<>"/dev/tcp/$1/$2" || exit 1

# ask OPCODE BODY WANTED: a frame with the body, given in printf's escapes; true where the answer has that opcode.
ask() {
	local n
	n=$(printf "$2" | wc -c)
	printf "\x04\x00\x00\x00\x$1$(printf '\\x%02x' 0 0 $((n / 256)) $((n % 256)))$2" >&3
	set -- "$3" $(dd bs=1 count=9 <&3 | od -An -v -tu1)
	[ $# = 10 ] && [ "$2" = 132 ] && [ "$6" = "$1" ] || return 1
	answer=$(dd bs=1 count=$(($9 * 256 + ${10})) <&3 | od -An -v -tx1 | tr -d ' \n')
}

ask 01 '\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0' 2 || exit 1
query='SELECT "C0" FROM keyspace1.standard1 LIMIT 1'
ask 07 "\x00\x00\x00$(printf '\\x%02x' ${#query})$query\x00\x01\x00" 8 || exit 1
# A result of kind 2 (rows) that has one row.
case $answer in 00000002*00000001????????*) exit 0 ;; esac
exit 1
