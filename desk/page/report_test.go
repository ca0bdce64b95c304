package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
)

var update = flag.Bool("update", false, "write the golden files anew")

// folder makes a small study's folder: two rounds on an emulating host, a failure, a warning and things left out.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	s := sample("large")
	study := s.Folders[0].Study
	study.Version = notebook.Version
	study.Metrics = map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}}
	host := s.Hosts[0].Host
	for _, r := range s.Rows {
		study.Treatments = append(study.Treatments, r.Treatment)
	}
	study.LeftOut = []notebook.LeftOut{{Treatment: s.LeftOut[0].Treatment, Reason: s.LeftOut[0].Reason}}
	w, err := notebook.Create(dir, study, host)
	if err != nil {
		t.Fatal(err)
	}
	at := study.Created
	tick := func() time.Time { at = at.Add(7 * time.Second); return at }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.Session(notebook.Session{Time: tick(), Event: "start"}))
	for round := range 5 {
		for i, tr := range study.Treatments {
			r := s.Rows[i]
			id := fmt.Sprintf("g%d-%d", round, i)
			check(w.Guest(notebook.Guest{ID: id, Treatment: tr.ID, Round: round, Start: tick(), Kernel: "6.18.5", RulerCostS: 4.3e-4 + float64(i)*1e-5, RulerCostN: 20, RoundTripS: 6e-5}))
			for k := -1; k < 3; k++ {
				one := notebook.Trial{Treatment: tr.ID, Round: round, Guest: id, Index: k, Start: tick(), Command: []string{"ffmpeg", "-i", "in.mp4"}}
				if k < 0 {
					one.Warmup, one.Index = true, 0
				}
				one.Value = r.Mean * (1 + 0.004*math.Sin(float64(round*31+i*7+k*3)))
				one.ElapsedS, one.HostS = one.Value, one.Value
				if i == 6 && round == 1 && k == 2 {
					one.Failure, one.Exit, one.Output, one.Value = "killed after 120 s", -1, "x265 [info]: </script><img src=x onerror=alert(1)>", 0
				}
				if i == 7 && k == 0 {
					one.Warnings = []string{"the guest's clock and the host's disagree by 1.4 %"}
				}
				check(w.Trial(one))
			}
		}
	}
	check(w.Session(notebook.Session{Time: tick(), Event: "end", Reason: "precise enough"}))
	check(w.Close())
	return dir
}

func TestGolden(t *testing.T) {
	dir := folder(t)
	files, err := Write([]string{dir}, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(rel))
	}
	want := "report.html figures/1-ffmpeg-mean.svg figures/1-ffmpeg-mean.pdf figures/1-ffmpeg-ratio.svg figures/1-ffmpeg-ratio.pdf figures/1-ffmpeg-emulated.svg figures/1-ffmpeg-emulated.pdf"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files\n%s\nwant\n%s", got, want)
	}
	golden(t, filepath.Join(dir, "report.html"), "report.html")
	golden(t, filepath.Join(dir, "figures/1-ffmpeg-mean.svg"), "1-ffmpeg-mean.svg")
}

// The page of a study that declares its figures.
func TestGoldenOfDeclaredFigures(t *testing.T) {
	files, err := WriteSummary(readPinning(t, small()), t.TempDir(), Options{Claims: shipped(t)})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, files[0], "pinning.html")
}

// golden compares a file with what it was.
func golden(t *testing.T, file, name string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".svg") && runtime.GOARCH != "amd64" {
		return // other processors fuse multiplications and additions, and round otherwise
	}
	got = drawing.ReplaceAll(got, []byte("$1…$2"))
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := firstDifference(string(got), string(want)); d != "" {
		t.Errorf("%s is not what it was; look at it and run the test with -update if it is better: %s", name, d)
	}
}

// drawing is what a page's golden file leaves out, to be a page that can be read: how its figures are drawn, and its
// style; and what the claims and the model say, whose words are tested where they are made.
var drawing = regexp.MustCompile(`(?s)(<svg class=[^>]*><title[^>]*>[^<]*</title><desc[^>]*>[^<]*</desc>|<style>|<section id="(?:claims|size)">).*?(</svg>|</style>|</section>)`)

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(the end)", "(the end)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			j := 0
			for j < len(a) && j < len(b) && a[j] == b[j] {
				j++
			}
			from := max(0, j-60)
			return fmt.Sprintf("line %d:\n  got  …%.200s\n  want …%.200s", i+1, a[from:], b[from:])
		}
	}
	return "line ends"
}

// The same folder gives the same bytes, all of them, wherever it lies and whenever it is read.
func TestSameFolderSameBytes(t *testing.T) {
	dir := folder(t)
	moved := filepath.Join(t.TempDir(), "elsewhere", "R")
	if err := os.CopyFS(moved, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	first, err := Write([]string{dir}, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Write([]string{moved}, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		a, err := os.ReadFile(first[i])
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(second[i])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one report to the next: %s", filepath.Base(first[i]), firstDifference(string(a), string(b)))
		}
	}
}

func TestOutIsWhereTheFilesGo(t *testing.T) {
	dir, out := folder(t), filepath.Join(t.TempDir(), "a", "b")
	files, err := Write([]string{dir}, out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f, out) {
			t.Errorf("%s is not below %s", f, out)
		}
		info, err := os.Stat(f)
		if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, PageName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written into the study's folder too: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(out, "*", ".tare-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	if _, err := Write(nil, "", Options{}); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("no folders: %v", err)
	}
	empty := t.TempDir()
	if _, err := Write([]string{empty}, "", Options{}); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("a folder that is none of a study: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteSummary(sample("large"), file, Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file in the place of the folder: %v", err)
	}
}

// What is hostile stays text: in the page and in the figures' files.
func TestHostileText(t *testing.T) {
	dir := t.TempDir()
	files, err := WriteSummary(hostile(), dir, Options{Claims: shipped(t)})
	if err != nil {
		t.Fatal(err)
	}
	tag := regexp.MustCompile(`(?i)<(img|script|b)[\s>]`)
	for _, f := range files {
		if strings.ContainsAny(filepath.Base(f), "<>&'\" ") {
			t.Errorf("file name %q", f)
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".pdf") {
			continue
		}
		if m := tag.FindIndex(data); m != nil {
			t.Errorf("%s holds %q", f, data[m[0]:min(len(data), m[1]+60)])
		}
		for _, r := range []string{"\u202e", "\x1b", "\x00", "\x01", "\x02", "\x03"} {
			if bytes.Contains(data, []byte(r)) {
				t.Errorf("%s holds the character %q", f, r)
			}
		}
		if strings.HasSuffix(f, ".svg") {
			d := xml.NewDecoder(bytes.NewReader(data))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Errorf("%s is not XML: %v", f, err)
					break
				}
			}
		}
	}
}

// What a reader must know before the figures is said.
func TestNotices(t *testing.T) {
	text := func(s *data.Summary) string {
		figs := figures(s)
		var b strings.Builder
		for _, n := range notices(s, figs) {
			b.WriteString(n.Head + "\n")
		}
		lines, _ := checks(s, treatmentNames(s))
		for _, l := range lines {
			b.WriteString(l.Text + "\n")
		}
		for _, l := range hostLines(s) {
			b.WriteString(l + "\n")
		}
		return b.String()
	}
	good := sample("large")
	for i := range good.Rows {
		good.Rows[i].Treatment.Accelerator, good.Rows[i].Representative, good.Rows[i].Failed = "", true, 0
	}
	got := text(good)
	for _, absent := range []string{"Not finished", "Ended early", "unsteady", "emulated", "failed", "fails"} {
		if strings.Contains(got, absent) {
			t.Errorf("a good study's first screen says %q:\n%s", absent, got)
		}
	}
	for _, present := range []string{"A/A check holds", "bare metal here means this virtual machine without a further layer"} {
		if !strings.Contains(got, present) {
			t.Errorf("a good study's first screen does not say %q:\n%s", present, got)
		}
	}
	got = text(troubled())
	for _, present := range []string{"Not finished.", "The host was unsteady.", "Every VM was emulated.", "Some trials failed.", "A/A check fails"} {
		if !strings.Contains(got, present) {
			t.Errorf("the first screen does not say %q:\n%s", present, got)
		}
	}
	early := sample("large")
	early.Folders[0].Ends = []string{"time budget"}
	early.AA = nil
	got = text(early)
	for _, present := range []string{"Ended early.", "No A/A check was run"} {
		if !strings.Contains(got, present) {
			t.Errorf("the first screen does not say %q:\n%s", present, got)
		}
	}
}

// A summary of nothing, as of a study killed before its first trial, gives a page and no crash.
func TestNothingMeasured(t *testing.T) {
	for _, s := range []*data.Summary{
		{Sentence: "Nothing was measured."},
		{Sentence: "Nothing was measured.", Rows: []data.Row{{Treatment: treatment("bm", "", "", "", "large"), Mean: nan, MeanLow: nan, MeanHigh: nan, Ratio: nan, RatioLow: nan, RatioHigh: nan, Representative: true}}},
	} {
		files, err := WriteSummary(s, t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(page, []byte("Nothing was measured.")) || bytes.Contains(page, []byte("NaN")) {
			t.Errorf("the page of nothing: %.300s", page)
		}
	}
}

func TestEmulatedIsApart(t *testing.T) {
	kinds := map[kind]int{}
	for _, f := range figures(sample("large")) {
		kinds[f.kind]++
		for _, m := range f.marks {
			if m.look.emulated != (f.kind == emulated) {
				t.Errorf("%q is in the figure %q", m.label, f.title)
			}
		}
	}
	if kinds[means] != 1 || kinds[ratios] != 1 || kinds[emulated] != 1 {
		t.Errorf("figures by kind: %v", kinds)
	}
}

// Two treatments of one figure never look the same.
func TestLooksDiffer(t *testing.T) {
	for _, f := range figures(sample("large")) {
		if f.kind == ratios {
			continue // told apart by their labels
		}
		seen := map[look]string{}
		for _, m := range f.marks {
			if other := seen[m.look]; other != "" {
				t.Errorf("%q looks like %q", m.label, other)
			}
			seen[m.look] = m.label
		}
	}
}

func TestDoubtIsSeen(t *testing.T) {
	for _, f := range figures(troubled()) {
		if f.kind != ratios {
			continue
		}
		marked := 0
		for _, m := range f.marks {
			if strings.HasSuffix(m.label, " ?") {
				marked++
			}
		}
		if marked != 2 || !strings.Contains(f.caption, "doubtful") {
			t.Errorf("%d marks are shown as doubtful, want 2; caption: %s", marked, f.caption)
		}
		return
	}
	t.Error("there is no figure of ratios")
}

func TestSampledSaysSo(t *testing.T) {
	s := sample("large")
	r := &s.Rows[0]
	r.DotsOf = 5000
	for i := range 400 {
		r.Dots = append(r.Dots, data.Dot{Value: float64(i)})
	}
	f := figures(s)[0]
	if n := len(f.marks[0].dots); n != dotsPerMark {
		t.Errorf("%d dots, want %d", n, dotsPerMark)
	}
	if last := f.marks[0].dots[dotsPerMark-1]; last != 399 {
		t.Errorf("the last dot is %g, want 399", last)
	}
	if !strings.Contains(f.caption, "even sample") {
		t.Errorf("the caption does not say that the trials were sampled: %s", f.caption)
	}
}

func TestValueWords(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v, low, high float64
		unit, want   string
	}{
		{1.31, 1.27, 1.35, "", "1.31 (1.27 to 1.35)"},
		{1.0204, 1.0004, 1.0404, "", "1.020 (1.000 to 1.040)"},
		{3.9, 3.853, 3.947, "s", "3.90 s (3.85 to 3.95)"},
		{58.9, 55.4, 62.4, "s", "59 s (55 to 62)"},
		{1234567, 1200000, 1270000, "op/s", "1234567 op/s (1200000 to 1270000)"},
		{1.01, 0.99, 9, "", "1.010 (0.990 to 9.000)"},
		{1.5, -inf, inf, "", "1.50 (without bounds)"},
		{1.5, 1.2, inf, "", "1.5 (above 1.2)"},
		{1.5, nan, nan, "s", "1.50 s (no interval)"},
		{2, 2, 2, "s", "2.00 s (2.00 to 2.00)"},
		{0, 0, 0, "s", "0 s (0 to 0)"},
		{nan, nan, nan, "s", "no value"},
		{0.000123, 0.000121, 0.000125, "s", "0.0001230 s (0.0001210 to 0.0001250)"},
	} {
		if got := valueWords(c.v, c.low, c.high, c.unit); got != c.want {
			t.Errorf("%g (%g to %g): %q, want %q", c.v, c.low, c.high, got, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		n         round
		low, high float64
		want      string
	}{
		{6, 0, 5.6, "0 1 2 3 4 5"},
		{4, 0, 5.6, "0 2 4"},
		{6, 0.97, 1.36, "1.0 1.1 1.2 1.3"},
		{6, 0, 66, "0 20 40 60"},
		{6, 0, 0.0042, "0 0.001 0.002 0.003 0.004"},
		{6, 1, 1, ""},
	} {
		var labels []string
		for _, k := range c.n.Ticks(c.low, c.high) {
			labels = append(labels, k.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%d ticks from %g to %g: %q, want %q", c.n, c.low, c.high, got, c.want)
		}
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{"ffmpeg": "ffmpeg", "My Work/../load": "my-work-load", "../..": "workload", "": "workload", strings.Repeat("a b", 60): ""} {
		got := slug(in)
		if want != "" && got != want {
			t.Errorf("slug(%q) = %q, want %q", in, got, want)
		}
		if len(got) > 40 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("slug(%q) = %q is no safe name", in, got)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"R": "R", "a b": "'a b'", "it's; rm -rf /": `'it'\''s; rm -rf /'`, "$(x)": "'$(x)'", "": "''"} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestTopology(t *testing.T) {
	cpus := []notebook.CPU{{ID: 0, Core: 0}, {ID: 1, Core: 0}, {ID: 2, Core: 1, Socket: 1, Node: 1}, {ID: 3, Core: 1, Socket: 1, Node: 1}}
	if got, want := topology(cpus), "4 CPUs on 2 cores (simultaneous multithreading), 2 sockets, 2 NUMA nodes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The command in the report does what was done, whatever was typed.
func TestTheSameAgain(t *testing.T) {
	f := sample("large").Folders[0]
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "pinning-small", "--out", "/tmp/x/P1"}, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "--rounds=3", "quick", "--only", "platform=cn,instance=a b", "--seed", "7", "--accel", "tcg", "--time-budget", "10m", "--format=json"},
			"tare run study.yaml --rounds 3 --only 'platform=cn,instance=a b' --accel tcg --seed 42 --out R-again"},
		{[]string{"bench", "--input", "it's; reboot.mp4", "--image", "x", "--", "cmd", "--rounds", "9"}, `tare run study.yaml --input 'it'\''s; reboot.mp4' --seed 42 --out R-again`},
		{[]string{"run", "quick", "--rounds"}, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "quick", "--only", "--out"}, "tare run study.yaml --only --out --seed 42 --out R-again"},
	} {
		f.Args = c.args
		if got := study(f).Commands[0]; got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.args, got, c.want)
		}
	}
}

// What was left out for one reason stands once, with all of it to unfold.
func TestLeftOutByReason(t *testing.T) {
	s := sample("large")
	why := "no VM with kvm: " + strings.Repeat("a long story; ", 12)
	for _, p := range []string{"vanilla", "pinned"} {
		s.LeftOut = append(s.LeftOut, data.LeftOut{Host: "bench-1", Treatment: treatment("vm", "qemu", "kvm", p, "large"), Reason: why})
	}
	page, err := os.ReadFile(samplePage(t, s))
	if err != nil {
		t.Fatal(err)
	}
	_, trust, _ := strings.Cut(string(page), "<h3>What was left out</h3>")
	if strings.Count(trust, "a long story; a long") < 1 || !strings.Contains(trust, "and 1 more</strong>: no VM") || !strings.Contains(trust, "<summary>All 2</summary>") || strings.Count(string(page), "no VM with kvm") > 2 {
		t.Errorf("%d times:\n%.1500s", strings.Count(string(page), "no VM with kvm"), trust)
	}
	f := notebook.Figure{Name: "Figure 3", Workload: "ffmpeg"}
	if note := missingNote(s, f); strings.Contains(note, "story") || !strings.Contains(note, "(the reason is under “What was left out”)") {
		t.Error(note)
	}
}
