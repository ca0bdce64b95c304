# place.sh FOLDER ROOT WORK: makes the place of a load from the trees ROOT and WORK (or -), as on bare metal (package
# bare). It has a mount namespace of its own, so that all mounts end with the ruler.
set -eu
cd "$1"
exec unshare --mount sh -euc "
	bind() { mount --bind \"\$1\" \"\$2\" && mount -o remount,bind,ro \"\$2\"; }
	bind trees/$2 root
	[ $3 = - ] || bind trees/$3 root/.tare/work
	mount -t tmpfs -o mode=1777 scratch root/.tare/scratch
	mount -t tmpfs -o mode=1777 tmp root/tmp
	mount -t proc -o nosuid,nodev,noexec proc root/proc
	mount -t sysfs -o nosuid,nodev,noexec,ro sysfs root/sys
	mount -t tmpfs -o nosuid,noexec,mode=755,size=64k dev root/dev
	umask 0
	mknod -m 666 root/dev/null c 1 3
	mknod -m 666 root/dev/zero c 1 5
	mknod -m 666 root/dev/full c 1 7
	mknod -m 666 root/dev/random c 1 8
	mknod -m 666 root/dev/urandom c 1 9
	mknod -m 666 root/dev/tty c 5 0
	ln -s /proc/self/fd root/dev/fd
	ln -s /proc/self/fd/0 root/dev/stdin
	ln -s /proc/self/fd/1 root/dev/stdout
	ln -s /proc/self/fd/2 root/dev/stderr
	ln -s pts/ptmx root/dev/ptmx
	mkdir -m 755 root/dev/pts
	mkdir root/dev/shm
	mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5 devpts root/dev/pts
	mount -t tmpfs -o nosuid,nodev,mode=1777 shm root/dev/shm
	exec ./ruler --fd 0 --root root
"
