#!/bin/sh
# transcode.sh PRESET: every clip to HEVC, all at once. One clip and thirty take the same way.
set -u
pids=
while read -r clip _; do
	ffmpeg -v error -nostdin -y -i "$TARE_WORK/$clip.mkv" -an -c:v libx265 -preset "$1" -x265-params log-level=none \
		"$TARE_SCRATCH/$clip.mp4" &
	pids="$pids $!"
done <"$TARE_WORK/clips.txt"
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
exit "$failed"
