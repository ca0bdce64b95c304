# server.sh: starts the server in the same way for seeding and measuring. sh sources it.
data=$TARE_SCRATCH/data
export LC_ALL=C.UTF-8
PATH=/usr/lib/postgresql/17/bin:$PATH

fail() {
	echo "postgres: $*" >&2
	exit 1
}

# PostgreSQL marks its data as in use with a shared memory segment, which remains after a kill. On bare metal, and while the database is made,
# it would remain on the host, so PostgreSQL gets its own IPC namespace if that is permitted. A container does not permit it, but already has
# one.
own_ipc=
if unshare --ipc true 2>/dev/null; then own_ipc="unshare --ipc"; fi

# as_postgres COMMAND…: runs a command as another user, because PostgreSQL does not run as root.
as_postgres() { $own_ipc setpriv --reuid postgres --regid postgres --clear-groups -- "$@"; }
