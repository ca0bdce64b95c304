# server.sh: how the server is started, the same when it is seeded and when it is measured. Sourced by sh.
data=$TARE_SCRATCH/data
export LC_ALL=C.UTF-8
PATH=/usr/lib/postgresql/17/bin:$PATH

fail() {
	echo "postgres: $*" >&2
	exit 1
}

# as_postgres COMMAND…: PostgreSQL does not run as root.
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups -- "$@"; }
