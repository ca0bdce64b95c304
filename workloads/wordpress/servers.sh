# Functions of serve.sh and seed.sh. The servers write only to the folder state in {scratch}.
state=$TARE_SCRATCH/state
socket=$state/mariadb.sock
export PHP_INI_SCAN_DIR=":$TARE_WORK" # Debian's own, then php.ini

fail() {
	echo "wordpress: $*" >&2
	exit 1
}

# Prints the first error in MariaDB's log. A killed database, for example by the kernel for memory, could not write one.
cause_of_database() {
	grep -m 1 -F '[ERROR]' "$state/mariadb.log" || echo "its log has no error, so it was killed"
}

# start_database [FLAG…]: starts MariaDB and returns when it answers. Its process ID is in $database.
start_database() {
	mariadbd --defaults-file="$TARE_WORK/mariadb.cnf" --datadir="$state/db" --tmpdir="$state" --socket="$socket" \
		--pid-file="$state/mariadb.pid" "$@" 2>"$state/mariadb.log" &
	database=$!
	# Ten minutes, for emulated machines. mariadbd opens its socket just before it answers.
	tries=6000
	until [ -S "$socket" ] && mariadb-admin --no-defaults --socket="$socket" --user=root ping >/dev/null 2>&1; do
		kill -0 "$database" 2>/dev/null || fail "MariaDB ended: $(cause_of_database)"
		[ $((tries -= 1)) -gt 0 ] || fail "MariaDB does not answer on its socket"
		sleep 0.1
	done
}

# start_web ADDRESS PORT START LEAST MOST WORKERS: starts Apache with START processes. It keeps LEAST to MOST of them idle, up to
# WORKERS. Its process ID is in $web.
# Apache gets its own session, because it sends SIGTERM to its whole process group when it ends.
start_web() {
	ADDRESS=$1 PORT=$2 START=$3 LEAST=$4 MOST=$5 WORKERS=$6 setsid apache2 -f "$TARE_WORK/apache.conf" -D FOREGROUND 2>"$state/apache.log" &
	web=$!
}
