package workload

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/workloads"
)

// bench is the folder of workload ffmpeg on this host. Its commands run without a platform.
type ffmpegBench struct {
	t             *testing.T
	work, scratch string
}

func newFFmpegBench(t *testing.T) *ffmpegBench {
	t.Helper()
	require.Program(t, "ffmpeg", "ffprobe", "cc")
	b := &ffmpegBench{t, t.TempDir(), t.TempDir()}
	w, err := Find(workloads.FS, "ffmpeg", ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range w.Files {
		text, err := workloads.FS.ReadFile("ffmpeg/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.work, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.compile(t.Context(), "check.c", filepath.Join(b.work, "check")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *ffmpegBench) run(argv ...string) (string, error) {
	cmd := exec.CommandContext(b.t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TARE_WORK="+b.work, "TARE_SCRATCH="+b.scratch)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *ffmpegBench) must(argv ...string) string {
	b.t.Helper()
	out, err := b.run(argv...)
	if err != nil {
		b.t.Fatalf("%q: %v: %s", argv, err, out)
	}
	return out
}

func (b *ffmpegBench) source(args ...string) {
	b.t.Helper()
	b.must(append(append([]string{"ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=128x96:rate=25:duration=2"}, args...), filepath.Join(b.work, "source"))...)
}

// prepare runs the preparation and moves the files that it left to work, as Make does.
func (b *ffmpegBench) prepare(segments, seconds, frames, width, megabits string) (string, error) {
	out, err := b.run("sh", filepath.Join(b.work, "prepare.sh"), segments, seconds, frames, width, megabits)
	entries, e := os.ReadDir(b.scratch)
	if e != nil {
		b.t.Fatal(e)
	}
	for _, f := range entries {
		if err := os.Rename(filepath.Join(b.scratch, f.Name()), filepath.Join(b.work, f.Name())); err != nil {
			b.t.Fatal(err)
		}
	}
	return out, err
}

func (b *ffmpegBench) check() (string, error) {
	return b.run(filepath.Join(b.work, "check"), filepath.Join(b.work, "clips.txt"), b.scratch)
}

func TestFFmpegWorkload(t *testing.T) {
	for i, c := range []struct {
		segments, seconds, frames, width, megabits string
		want                                       []int // frames a clip
	}{
		{"1", "0", "0", "0", "0", []int{50}},
		{"1", "5", "0", "0", "0", []int{125}}, // of 2 s
		{"1", "1", "0", "0", "0", []int{25}},
		{"3", "3", "0", "32", "0", []int{25, 25, 25}},
		{"1", "30", "12", "64", "0", []int{12}},
		{"30", "0", "0", "0", "0", []int{1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2}},
		{"1", "5", "0", "64", "1", []int{125}},
		{"3", "5", "0", "64", "1", []int{25, 50, 50}}, // at full seconds
		{"2", "0", "40", "0", "1", []int{25, 15}},
	} {
		b := newFFmpegBench(t)
		b.source("-c:v", "libx264", "-f", "mp4")
		if out, err := b.prepare(c.segments, c.seconds, c.frames, c.width, c.megabits); err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
		b.must("sh", filepath.Join(b.work, "transcode.sh"), "ultrafast", "2", []string{"host", "instance"}[i%2])
		if out, err := b.check(); err != nil {
			t.Errorf("%v: check: %v: %s", c, err, out)
		}
		// ffprobe confirms the check.
		for clip, want := range c.want {
			got := strings.TrimSpace(b.must("ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
				"stream=codec_name,nb_read_packets", "-of", "csv=p=0", filepath.Join(b.scratch, "clip-"+strconv.Itoa(clip+1)+".mp4")))
			if got != "hevc,"+strconv.Itoa(want) {
				t.Errorf("%v: clip %d: ffprobe says %q, want hevc,%d", c, clip+1, got, want)
			}
		}
	}
}

// One clip and several pieces come from one encoding: their packets are the same.
func TestFFmpegPiecesAreOfOneEncoding(t *testing.T) {
	packets := func(segments string) (all []string) {
		b := newFFmpegBench(t)
		b.source("-c:v", "libx264", "-f", "mp4")
		if out, err := b.prepare(segments, "6", "0", "64", "2"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		list, err := os.ReadFile(filepath.Join(b.work, "clips.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(list)) {
			out := b.must("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_data_hash", "MD5", "-show_entries", "packet=data_hash,flags", "-of", "csv=p=0", filepath.Join(b.work, strings.Fields(line)[0]+".mkv"))
			all = append(all, strings.Fields(out)...)
		}
		return all
	}
	one, six := packets("1"), packets("6")
	if len(one) != 150 || !slices.Equal(one, six) {
		t.Errorf("one clip has %d packets, and its pieces have %d others", len(one), len(six))
	}
	keys := 0
	for _, p := range one {
		if strings.HasPrefix(p, "K") {
			keys++
		}
	}
	if keys != 6 {
		t.Errorf("%d key frames in 6 s", keys)
	}
}

func TestFFmpegInputThatIsNoVideo(t *testing.T) {
	b := newFFmpegBench(t)
	src := filepath.Join(b.work, "source")
	b.source("-c:v", "libx264", "-f", "mpegts")
	whole, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	noise := bytes.Repeat([]byte("not a video "), 1000)
	for name, text := range map[string][]byte{"empty": nil, "noise": noise, "holes": append(whole[:2000:2000], noise...)} {
		if err := os.WriteFile(src, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := b.prepare("1", "0", "0", "0", "0"); err == nil || strings.TrimSpace(out) == "" {
			t.Errorf("%s: accepted, or no reason: %v %q", name, err, out)
		}
	}
	b.must("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "sine=duration=1", "-f", "wav", src)
	if out, err := b.prepare("1", "0", "0", "0", "0"); err == nil || !strings.Contains(out, "no video stream") {
		t.Errorf("a sound: %v %q", err, out)
	}
	b.source("-c:v", "libx264", "-frames:v", "20", "-f", "mp4")
	if out, err := b.prepare("30", "0", "0", "0", "0"); err == nil || !strings.Contains(out, "20 frames, too few to split into 30 pieces") {
		t.Errorf("too short: %v %q", err, out)
	}
}

func TestFFmpegOutputThatIsWrong(t *testing.T) {
	b := newFFmpegBench(t)
	b.source("-c:v", "libx264", "-f", "mp4")
	if out, err := b.prepare("1", "0", "0", "0", "0"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := filepath.Join(b.scratch, "clip-1.mp4")
	encode := func(args ...string) {
		b.must(append(append([]string{"ffmpeg", "-v", "error", "-y", "-i", filepath.Join(b.work, "clip-1.mkv")}, args...), "-f", "mp4", out)...)
	}
	for _, c := range []struct {
		name, want string
		make       func()
	}{
		{"missing", "the output is missing", func() {}},
		{"H.264", "its video is not HEVC", func() { encode("-c:v", "copy") }},
		{"short", "49 frames: must be 50", func() { encode("-frames:v", "49", "-c:v", "libx265", "-preset", "ultrafast") }},
		{"empty", "it is empty", func() { os.WriteFile(out, nil, 0o644) }},
		{"noise", "it has no index", func() { os.WriteFile(out, bytes.Repeat([]byte{0, 0, 0, 8, 'f', 'r', 'e', 'e'}, 99), 0o644) }},
	} {
		c.make()
		if said, err := b.check(); err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v %q, want %q", c.name, err, said, c.want)
		}
	}
	// The check must not crash on a file that is cut or has a changed byte in its index, and must refuse a cut file.
	encode("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none")
	whole, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := b.check(); err != nil {
		t.Fatalf("the whole file: %v %s", err, said)
	}
	try := func(name string, text []byte, mayPass bool) {
		if err := os.WriteFile(out, text, 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := b.check()
		if ee, ok := err.(*exec.ExitError); ok && ee.ExitCode() != 1 {
			t.Errorf("%s: %v %s", name, err, said)
		} else if err == nil && !mayPass {
			t.Errorf("%s: accepted", name)
		}
	}
	for cut := 0; cut < len(whole); cut += 1 + len(whole)/60 {
		try("cut at "+strconv.Itoa(cut), whole[:cut], false)
	}
	index := bytes.Index(whole, []byte("moov"))
	for i := index; i < min(len(whole), index+700); i += 3 {
		changed := bytes.Clone(whole)
		changed[i] ^= 0xff
		try("byte "+strconv.Itoa(i)+" changed", changed, true)
	}
}
