# server.sh: starts the server in the same way for seeding and measuring. sh sources it.
data=$TARE_SCRATCH/data
export LC_ALL=C.UTF-8
PATH=/usr/lib/postgresql/17/bin:$PATH

fail() {
	echo "postgres: $*" >&2
	exit 1
}

# as_postgres COMMAND…: runs a command as another user, because PostgreSQL does not run as root.
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups -- "$@"; }
