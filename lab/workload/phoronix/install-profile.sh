#!/bin/sh
# install-profile.sh PROGRAM runs the profile's install.sh in a separate folder with the profile's files, as the Phoronix Test Suite does. install.sh
# must make PROGRAM. One archive keeps the folder, because a preparation may leave only files. Programs later run in a folder of the same name.
home=/tmp/installed
mkdir "$home" && cp "$TARE_WORK"/* "$home/" && cd "$home" || exit 1
NUM_CPU_CORES=$(nproc) OS_ARCH=$(uname -m)
# A profile's programs and scripts print numbers with a point, and read UTF-8, whatever the image's locale.
export LC_ALL=C.UTF-8 HOME="$home" NUM_CPU_CORES NUM_CPU_JOBS="$NUM_CPU_CORES" OS_TYPE=Linux OS_ARCH
chmod +x install.sh
./install.sh </dev/null >said 2>&1
status=$?
[ ! -f install-exit-status ] || read -r status <install-exit-status
tail -n 20 said
[ "$status" = 0 ] || {
	echo "the profile's install.sh ended with exit status $status: $(grep -v '^[[:space:]]*$' said | tail -n 1 | cut -c1-200)" >&2
	exit 1
}
[ -x "$1" ] || {
	echo "the profile's install.sh made no program $1" >&2
	exit 1
}
rm said
tar -cf "$TARE_SCRATCH/installed.tar" -C "$home" .
