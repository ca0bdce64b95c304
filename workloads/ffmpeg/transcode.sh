#!/bin/sh
# transcode.sh PRESET CORES SEES: transcodes all clips to HEVC at the same time. One clip and thirty clips use the same commands.
set -u
pools= threads=
# FFmpeg counts the CPUs that it may use, and x265 counts the online CPUs.
[ "$3" = host ] || pools=":pools=$2" threads="-threads $2"
pids=
while read -r clip _; do
	ffmpeg -v error -nostdin -y $threads -i "$TARE_WORK/$clip.mkv" -an -c:v libx265 -preset "$1" -x265-params "log-level=none$pools" \
		"$TARE_SCRATCH/$clip.mp4" &
	pids="$pids $!"
done <"$TARE_WORK/clips.txt"
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
exit "$failed"
