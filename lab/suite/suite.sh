#!/bin/sh
# suite.sh: runs the study, prints what it says on every console, keeps its results folder on the disk, and ends the machine. A boot after one that was cut short goes on.
study=$(cat /etc/tare/study)
out=/var/lib/tare-suite/results
mkdir -p /var/lib/tare-suite && cd /var/lib/tare-suite || exit 1
consoles=$(sed 's|[^ ]*|/dev/&|g' /sys/class/tty/console/active)
work() {
	echo "Tare runs the study $study on this machine. Nothing has to be typed; it takes as long as the study does."
	tare run "$study" --out "$out" </dev/null
	echo "tare run has ended with exit status $?."
	tar -cf /dev/disk/by-partlabel/tare-results -C /var/lib/tare-suite results && sync && echo "The results are kept on this disk: tare image results DISK --out FOLDER reads them." ||
		echo "The results could not be kept on the disk."
	echo "The machine is switched off."
}
# shellcheck disable=SC2086
work 2>&1 | tee $consoles
systemctl poweroff
