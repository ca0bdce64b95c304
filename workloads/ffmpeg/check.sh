#!/bin/sh
# check.sh: every output is HEVC and has as many frames as its clip.
set -u
while read -r clip frames; do
	got=$(ffprobe -v error -select_streams v:0 -count_packets -show_entries stream=codec_name,nb_read_packets \
		-of csv=p=0 "$TARE_SCRATCH/$clip" | head -n 1)
	if [ "$got" != "hevc,$frames" ]; then
		echo "$clip: the output is \"$got\", \"hevc,$frames\" was expected" >&2
		exit 1
	fi
done <"$TARE_WORK/clips.txt"
