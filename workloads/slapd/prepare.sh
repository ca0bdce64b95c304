#!/bin/sh
# prepare.sh ENTRIES: makes the database data.mdb, which the first guest copies to the folder that all guests share.
set -eu
sed "s|FOLDER|$TARE_SCRATCH|" "$TARE_WORK/slapd.conf" >"$TARE_SCRATCH/slapd.conf"
awk -v n="$1" 'BEGIN {
	print "dn: dc=tare\nobjectClass: dcObject\nobjectClass: organization\ndc: tare\no: Tare\n"
	for (i = 0; i < n; i++) printf "dn: uid=%d,dc=tare\nobjectClass: account\nuid: %d\ndescription: %0100d\n\n", i, i, i
}' >"$TARE_SCRATCH/entries.ldif"
slapadd -q -f "$TARE_SCRATCH/slapd.conf" -l "$TARE_SCRATCH/entries.ldif" >"$TARE_SCRATCH/log" 2>&1 || {
	echo "slapadd failed: $(tail -n 1 "$TARE_SCRATCH/log")" >&2
	exit 1
}
rm -f "$TARE_SCRATCH/entries.ldif" "$TARE_SCRATCH/slapd.conf" "$TARE_SCRATCH/log" "$TARE_SCRATCH/lock.mdb"
