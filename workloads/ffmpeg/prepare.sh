#!/bin/sh
# prepare.sh SEGMENTS SECONDS FRAMES WIDTH MEGABITS: makes clip-N.mkv (H.264) and clips.txt ("NAME FRAMES" in each line) from the source.
# It is bit-exact and uses one thread, so the same source gives the same bytes on every host.
set -eu
segments=$1 seconds=$2 frames=$3 width=$4 megabits=$5
src="$TARE_WORK/source"
cd "$TARE_SCRATCH"

# V is a video stream. v would also match a cover picture.
count() { # frames of the first video stream
	ffprobe -v error -select_streams V:0 -count_packets -show_entries stream=nb_read_packets -of csv=p=0 "$1" |
		head -n 1 | tr -dc 0-9
}

[ -s "$src" ] || { echo "the input is an empty file: must be a video" >&2; exit 1; }
said=$(ffprobe -v error "$src" 2>&1) ||
	{ echo "FFmpeg cannot read the input as a video: $(echo "$said" | tail -n 1 | sed "s|^$src: ||")" >&2; exit 1; }
kind=$(ffprobe -v error -select_streams V:0 -show_entries stream=codec_name -of csv=p=0 "$src" | head -n 1)
[ -n "$kind" ] || { echo "the input has no video stream" >&2; exit 1; }
total=$(count "$src")
[ "${total:-0}" -gt 0 ] || { echo "the input's video stream has no frame" >&2; exit 1; }
# A decoder conceals damage and reports it. A trial must not measure concealment.
said=$(ffmpeg -v error -nostdin -i "$src" -map 0:V:0 -f null - 2>&1) && [ -z "$said" ] ||
	{ echo "the input's video stream is damaged: $(echo "$said" | tail -n 1)" >&2; exit 1; }
exact="-map 0:V:0 -an -fflags +bitexact -flags:v +bitexact -map_metadata -1"

# Makes the film of SECONDS by repeating the whole source, which begins with a key frame, without encoding it again.
# It ends after its last frame in decoding order, so no frame lacks another.
rate=$(ffprobe -v error -select_streams V:0 -show_entries stream=avg_frame_rate -of csv=p=0 "$src" | head -n 1 | tr -dc 0-9/) film=0
case $rate in
*/0 | '') [ "$seconds" = 0 ] || { echo "the input does not say its frame rate: seconds=0 takes it as it is" >&2; exit 1; } ;;
*) film=$((seconds * ${rate%/*} / ${rate#*/})) ;;
esac
if [ "$film" -gt 0 ] && [ "$film" -ne "$total" ]; then
	ffmpeg -v error -nostdin -stream_loop -1 -i "$src" $exact -c:v copy -frames:v "$film" -f matroska film.mkv
	total=$(count film.mkv)
	[ "$total" = "$film" ] || { echo "the input cannot be made a film of $seconds s: it has $total frames of $film" >&2; exit 1; }
	src=film.mkv
fi
if [ "$frames" -gt 0 ] && [ "$frames" -lt "$total" ]; then total=$frames; fi

if [ "$segments" = 1 ] && [ "$frames" = 0 ] && [ "$width" = 0 ] && [ "$megabits" = 0 ] && [ "$kind" = h264 ]; then
	# Copies the source without its sound.
	ffmpeg -v error -xerror -nostdin -i "$src" $exact -c:v copy -f matroska clip-1.mkv
	[ "$(count clip-1.mkv)" = "$total" ] || { echo "the input's video stream is damaged" >&2; exit 1; }
	echo "clip-1 $total" >clips.txt
	rm -f film.mkv
	exit 0
fi
if [ "$total" -lt "$segments" ]; then
	has="the film has"
	[ "$total" != "$frames" ] || has="frames=$frames takes"
	echo "$has $total frames, too few to split into $segments pieces" >&2
	exit 1
fi

# With MEGABITS the whole film is encoded once, at this rate and with a key frame in each second. One clip and many pieces are then cut from the
# same stream, at key frames, so they differ in nothing else.
if [ "$megabits" != 0 ]; then
	each=$(echo "$rate" | awk -F/ '{ n = int($1 / ($2 ? $2 : 1) + 0.5); print (n > 0 ? n : 1) }')
	seconds=$(((total + each - 1) / each))
	[ "$seconds" -ge "$segments" ] || { echo "the film has $seconds s, too few to cut it at full seconds into $segments pieces" >&2; exit 1; }
	scale=null
	[ "$width" = 0 ] || scale="scale=$width:-2:flags=bicubic+bitexact"
	ffmpeg -v error -xerror -nostdin -i "$src" $exact -vf "$scale" -frames:v "$total" -c:v libx264 -b:v "${megabits}M" -maxrate "${megabits}M" -bufsize "$((2 * megabits))M" \
		-g "$each" -keyint_min "$each" -sc_threshold 0 -threads 1 -pix_fmt yuv420p -f matroska encoded.mkv
	i=0 at= last=0
	while [ "$i" -lt "$segments" ]; do
		i=$((i + 1))
		to=$((i * seconds / segments * each))
		[ "$i" -lt "$segments" ] || to=$total
		[ "$i" = "$segments" ] || at="$at,$to"
		echo "clip-$i $((to - last))" >>clips.txt
		last=$to
	done
	if [ "$segments" = 1 ]; then
		mv encoded.mkv clip-1.mkv
	else
		ffmpeg -v error -xerror -nostdin -i encoded.mkv $exact -c:v copy -f segment -segment_frames "${at#,}" -segment_start_number 1 \
			-reset_timestamps 1 -segment_format matroska -segment_format_options fflags=+bitexact clip-%d.mkv
	fi
	while read -r clip frames; do
		got=$(count "$clip.mkv")
		[ "$got" = "$frames" ] || { echo "$clip has $got frames: must be $frames; check whether the input is damaged" >&2; exit 1; }
	done <clips.txt
	rm -f film.mkv encoded.mkv
	exit 0
fi

# The shipped clip has only one key frame, its first. Pieces of a second are therefore encoded again, once, almost without loss. Piece i holds
# frames [i*total/segments, (i+1)*total/segments), so each frame is in exactly one piece.
i=0
while [ "$i" -lt "$segments" ]; do
	from=$((i * total / segments)) to=$(((i + 1) * total / segments))
	i=$((i + 1))
	cut="trim=start_frame=$from:end_frame=$to,setpts=PTS-STARTPTS"
	[ "$width" = 0 ] || cut="$cut,scale=$width:-2:flags=bicubic+bitexact"
	ffmpeg -v error -xerror -nostdin -i "$src" $exact -vf "$cut" \
		-c:v libx264 -qp 16 -threads 1 -pix_fmt yuv420p -f matroska "clip-$i.mkv"
	got=$(count "clip-$i.mkv")
	[ "$got" = $((to - from)) ] || { echo "piece $i has $got frames: must be $((to - from)); check whether the input is damaged" >&2; exit 1; }
	echo "clip-$i $got" >>clips.txt
done
rm -f film.mkv
