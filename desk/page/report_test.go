package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// folder makes a small study's folder: two rounds on an emulating host, a failure, a warning and things left out.
func folder(t *testing.T) string {
	t.Helper()
	s := sample("large")
	study := s.Folders[0].Study
	study.Version = notebook.Version
	study.Metrics = map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}}
	for _, r := range s.Rows {
		study.Treatments = append(study.Treatments, r.Treatment)
	}
	study.LeftOut = []notebook.LeftOut{{Treatment: s.LeftOut[0].Treatment, Reason: s.LeftOut[0].Reason}}
	at := study.Created
	tick := func() time.Time { at = at.Add(7 * time.Second); return at }
	records := []any{notebook.Session{Time: tick(), Event: "start"}}
	for round := range 5 {
		for i, tr := range study.Treatments {
			r := s.Rows[i]
			id := fmt.Sprintf("g%d-%d", round, i)
			records = append(records, notebook.Guest{ID: id, Treatment: tr.ID, Round: round, Start: tick(), Kernel: "6.18.5", RulerCostS: 4.3e-4 + float64(i)*1e-5, RulerCostN: 20, RoundTripS: 6e-5})
			for k := -1; k < 3; k++ {
				one := notebook.Trial{Treatment: tr.ID, Round: round, Guest: id, Index: k, Start: tick(), Command: []string{"ffmpeg", "-i", "in.mp4"}}
				if k < 0 {
					one.Warmup, one.Index = true, 0
				}
				one.Value = r.Mean * (1 + 0.004*math.Sin(float64(round*31+i*7+k*3)))
				one.ElapsedS, one.HostS = one.Value, one.Value
				if i == 6 && round == 1 && k == 2 {
					one.Failure, one.Exit, one.Output, one.Value = notebook.TextMessage("killed after 120 s"), -1, "x265 [info]: </script><img src=x onerror=alert(1)>", 0
				}
				if i == 7 && k == 0 {
					one.Warnings = []*notebook.Message{notebook.TextMessage("the guest's clock and the host's disagree by 1.4 %")}
				}
				records = append(records, one)
			}
		}
	}
	records = append(records, notebook.Session{Time: tick(), Event: "end", Reason: notebook.TextMessage("precise enough")})
	return notebooktest.Write(t, study, s.Hosts[0].Host, records...)
}

func TestFilesOfAReport(t *testing.T) {
	dir := folder(t)
	files, err := readAndWrite(dir, dir)
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
	want := "report.html"
	for _, f := range []string{"change", "mean", "runs", "rounds", "time", "emulated"} {
		want += " figures/1-ffmpeg-" + f + ".svg figures/1-ffmpeg-" + f + ".pdf"
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files\n%s\nwant\n%s", got, want)
	}
	page, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "first-screen.html", golden.Excerpt(t, page, "<header>", "</header>"))
	page = regexp.MustCompile(`href="data:text/csv[^"]*"`).ReplaceAll(page, []byte(`href="data:text/csv"`))
	golden.Check(t, "validity.html", golden.Excerpt(t, page, `<section id="validity">`, "</section>"))
	golden.Check(t, "provenance.html", golden.Excerpt(t, page, `<section id="provenance">`, "</dl>"))
}

// The same folder gives the same bytes, all of them, wherever it lies and whenever it is read.
func TestSameFolderSameBytes(t *testing.T) {
	dir := folder(t)
	moved := filepath.Join(t.TempDir(), "elsewhere", "R")
	if err := os.CopyFS(moved, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	first, err := readAndWrite(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := readAndWrite(moved, moved)
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
			t.Errorf("%s differs from one report to the next: %s", filepath.Base(first[i]), golden.Difference(string(a), string(b)))
		}
	}
}

func TestOutIsWhereTheFilesGo(t *testing.T) {
	dir, out := folder(t), filepath.Join(t.TempDir(), "a", "b")
	files, err := readAndWrite(dir, out)
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
	pdfs, attributes := 0, 0
	for _, f := range files {
		if strings.ContainsAny(filepath.Base(f), "<>&'\" ") {
			t.Errorf("file name %q", f)
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".pdf") {
			pdfs++
			for _, name := range []string{"/JavaScript", "/JS", "/OpenAction", "/AA", "/Launch", "/URI", "onerror", "{{.}}"} {
				if bytes.Contains(data, []byte(name)) {
					t.Errorf("%s holds %s", f, name)
				}
			}
			continue
		}
		attributes += harmless(t, f, data)
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
	if pdfs == 0 || attributes == 0 {
		t.Errorf("%d PDFs and %d attributes were looked at", pdfs, attributes)
	}
}

// harmless looks at every attribute of a page or a picture, and says how many there are: none runs anything, and none leads elsewhere.
func harmless(t *testing.T, name string, text []byte) (n int) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return n
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		for _, a := range e.Attr {
			n++
			switch attr := strings.ToLower(a.Name.Local); {
			case strings.HasPrefix(attr, "on") || attr == "srcdoc" || attr == "formaction":
				t.Errorf("%s: <%s> has the attribute %s=%.60q", name, e.Name.Local, attr, a.Value)
			case attr == "href" || attr == "src" || attr == "action" || attr == "data":
				if strings.HasPrefix(a.Value, csvType) && e.Name.Local == "a" && slices.ContainsFunc(e.Attr, func(o xml.Attr) bool { return o.Name.Local == "download" }) {
					continue // it is kept as a file, and never shown
				}
				if to, err := url.Parse(a.Value); err != nil || to.Scheme != "" || to.Host != "" || strings.HasPrefix(to.Path, "/") {
					t.Errorf("%s: <%s> leads to %.60q", name, e.Name.Local, a.Value)
				}
			case attr == "style" && strings.Contains(a.Value, "url("):
				t.Errorf("%s: <%s> has the style %.60q", name, e.Name.Local, a.Value)
			}
		}
	}
}

// A page names the disk of the VMs, or says that it is not known.
func TestMachinesOfVMs(t *testing.T) {
	s := sample("large")
	was := 0
	for _, r := range s.Rows {
		if r.Treatment.Platform == notebook.VMCN {
			r.Machines = []notebook.Machine{{}}
			was++
		}
	}
	if was == 0 {
		t.Fatal("the sample has no container in a VM")
	}
	page, err := os.ReadFile(samplePage(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<dd>disk qcow2, cache mode writeback, AIO engine threads, an I/O thread; memory of ordinary pages; 1 socket, 1 thread a core, 1 NUMA node</dd>", "ran VMs that ignored flushes"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// A page states what a reader must know before the figures.
func TestNotices(t *testing.T) {
	text := func(s *data.Summary) string {
		page, err := os.ReadFile(samplePage(t, s))
		if err != nil {
			t.Fatal(err)
		}
		return string(golden.Excerpt(t, page, `<ul class="state">`, "<nav"))
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
	for _, present := range []string{"A/A check holds", "bare metal means this VM without another layer"} {
		if !strings.Contains(got, present) {
			t.Errorf("a good study's first screen does not say %q:\n%s", present, got)
		}
	}
	got = text(troubled())
	for _, present := range []string{"Not finished.", "The host was unsteady.", "Every VM was emulated:</strong> software emulation (TCG).", "Some trials failed.", "A/A check fails"} {
		if !strings.Contains(got, present) {
			t.Errorf("the first screen does not say %q:\n%s", present, got)
		}
	}
	early := sample("large")
	early.Folders[0].Ends = []data.End{{Recorded: true, Reason: notebook.Say("time-budget")}}
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
		{},
		{Rows: []*data.Row{{Treatment: treatment("bm", "", "", "", "large"), Mean: nan, MeanLow: nan, MeanHigh: nan, Ratio: nan, RatioLow: nan, RatioHigh: nan, Representative: true}}},
	} {
		files, err := WriteSummary(s, t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(page, []byte("othing was measured")) || bytes.Contains(page, []byte("NaN")) {
			t.Errorf("the page of nothing: %.300s", page)
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

// The command in the report does what was done, whatever was typed.
func TestTheSameAgain(t *testing.T) {
	f := sample("large").Folders[0]
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "pinning-small", "--out", "/tmp/x/P1"}, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "--rounds=3", "quick", "--only", "platform=cn,instance=a b", "--seed", "7", "--accel", "tcg", "--vm-kernel", "a kernel", "--time-budget", "10m", "--format=json"},
			"tare run study.yaml --rounds 3 --only 'platform=cn,instance=a b' --accel tcg --vm-kernel 'a kernel' --seed 42 --out R-again"},
		{[]string{"bench", "--input", "it's; reboot.mp4", "--image", "x", "--", "cmd", "--rounds", "9"}, `tare run study.yaml --input 'it'\''s; reboot.mp4' --seed 42 --out R-again`},
		{[]string{"run", "quick", "--rounds"}, "tare run study.yaml --seed 42 --out R-again"},
		{[]string{"run", "quick", "--only", "--out"}, "tare run study.yaml --only --out --seed 42 --out R-again"},
	} {
		f.Args = c.args
		if got := commands(f)[0]; got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.args, got, c.want)
		}
	}
}

// What was left out for one reason stands once, with all of it to unfold.
func TestLeftOutByReason(t *testing.T) {
	s := sample("large")
	why := "no VM with kvm: " + strings.Repeat("a long story; ", 12)
	for _, p := range []string{"vanilla", "pinned"} {
		s.LeftOut = append(s.LeftOut, data.LeftOut{Host: "bench-1", Treatment: treatment("vm", "qemu", "kvm", p, "large"), Reason: notebook.TextMessage(why)})
	}
	page, err := os.ReadFile(samplePage(t, s))
	if err != nil {
		t.Fatal(err)
	}
	_, trust, _ := strings.Cut(string(page), "<h3>What was left out</h3>")
	if strings.Count(trust, "a long story; a long") < 1 || !strings.Contains(trust, "and 1 more</strong>: no VM") || !strings.Contains(trust, "<summary>All 2</summary>") || strings.Count(string(page), "no VM with kvm") > 2 {
		t.Errorf("%d times:\n%.1500s", strings.Count(string(page), "no VM with kvm"), trust)
	}
	s.Folders[0].Study.Figures = []notebook.Figure{{Name: "Figure 3", Workload: "ffmpeg"}}
	if note := declaredNote(t, s, "Figure 3"); strings.Contains(note, "story") || !strings.Contains(note, "(the reason is under “What was left out”)") {
		t.Error(note)
	}
}
