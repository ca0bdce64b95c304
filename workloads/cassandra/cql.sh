# cql.sh: queries to Cassandra in its native protocol (version 4), without a JVM. bash sources it.

# cql_open ADDRESS PORT: opens a connection on file descriptor 3.
cql_open() { exec 3<>"/dev/tcp/$1/$2" && cql_frame 01 '\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0' 2; }

# cql_frame OPCODE BODY WANTED: sends a frame with the body, in printf's escapes. It is true if the answer has the opcode WANTED. The answer's body
# is in $answer, in hexadecimal digits.
cql_frame() {
	local n
	n=$(printf "$2" | wc -c)
	printf "\x04\x00\x00\x00\x$1$(printf '\\x%02x' 0 0 $((n / 256)) $((n % 256)))$2" >&3
	set -- "$3" $(dd bs=1 count=9 2>/dev/null <&3 | od -An -v -tu1)
	[ $# = 10 ] && [ "$2" = 132 ] && [ "$6" = "$1" ] || return 1
	answer=$(dd bs=1 count=$(($9 * 256 + ${10})) 2>/dev/null <&3 | od -An -v -tx1 | tr -d ' \n')
	if [ $(($3 & 8)) != 0 ]; then # warnings precede the body
		n=$((16#${answer:0:4})) answer=${answer:4}
		for (( ; n > 0; n--)); do answer=${answer:4+2*16#${answer:0:4}}; done
	fi
}

# cql_query QUERY: sends a query at consistency ONE. It is true if the answer is a result of kind 2 (rows).
cql_query() {
	cql_frame 07 "\x00\x00\x00$(printf '\\x%02x' ${#1})$1\x00\x01\x00" 8 || return 1
	case $answer in 00000002*) ;; *) return 1 ;; esac
}

# cql_number QUERY: prints the last number of the last row, such as a count.
cql_number() { cql_query "$1" && echo $((16#${answer: -16})); }
