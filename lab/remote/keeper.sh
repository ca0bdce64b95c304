# keeper.sh ARCH: keeps a folder on the machine of the loads as long as the connection lasts, and prints its path.
# Programs in the folder, and its mounts, end with the connection too.
set -u
umask 077
trap "" HUP INT TERM PIPE
fail() { echo "$1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "user $(id -un) is not root there, and a load needs root for its root file system; name ssh://root@… with a key that root accepts"
[ "$(uname -m)" = "$1" ] || fail "it is $(uname -m), and the load uses the service's programs, which are for $1; name a machine of that architecture"
for program in unshare mount tar mknod flock; do
	command -v "$program" >/dev/null || fail "it has no program $program; install it there (util-linux, tar, coreutils)"
done
base=/var/lib/tare-load
mkdir -p "$base" || exit 1
exec 8<"$base" && flock 8 || exit 1 # until its own folder has a lock
for left in "$base"/*; do # by a keeper that was killed, or before the machine was started anew: a lock ends with who has it
	[ -d "$left" ] && flock -n "$left" true 2>/dev/null && rm -rf "$left"
done
folder=$base/$$
mkdir "$folder" "$folder/trees" "$folder/root" || exit 1
exec 9<"$folder" && flock -n 9 || exit 1
exec 8<&-
echo "tare-load $folder $SSH_CONNECTION"
cat >/dev/null 9<&- # which has the lock only as long as this lives
for try in 1 2 3 4 5; do # as long as something that ends still writes
	rm -rf "$folder" 2>/dev/null && break
	sleep 1
done
rmdir "$base" 2>/dev/null # others may have theirs
[ ! -e "$folder" ]
