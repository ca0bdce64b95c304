#!/bin/bash
# sjeng.sh DEPTH FILE: searches the first position to DEPTH and writes the last line of the search: depth, score, time, positions, moves.
# sjeng.sh check DEPTH FILE: checks the number of positions.
set -eu
case $1 in
check)
	read -r depth _ _ positions _ <"$3"
	declare -A want=([7]=35369 [8]=92717 [9]=361178 [10]=1129927 [11]=3494398)
	if [ "$depth" != "$2" ] || [ "$positions" != "${want[$2]}" ]; then
		echo "$positions positions at depth $depth: must be ${want[$2]} at depth $2" >&2
		exit 1
	fi
	;;
*)
	echo "root:x:0:0:root:$PWD:/bin/bash" >users
	echo "root:x:0:" >groups
	coproc env NSS_WRAPPER_PASSWD=users NSS_WRAPPER_GROUP=groups LD_PRELOAD=libnss_wrapper.so /usr/games/sjeng
	pid=$COPROC_PID from=${COPROC[0]} to=${COPROC[1]}
	# Any input would end the search, so it sends quit only after the move.
	printf 'xboard\nnew\npost\nsd %d\nst 100000\ngo\n' "$1" >&"$to"
	last=
	while read -r line <&"$from"; do
		case $line in
		[0-9]*) last=$line ;;
		move*) break ;;
		esac
	done
	echo quit >&"$to"
	wait "$pid" || :
	echo "$last" >"$2"
	;;
esac
