package terminal_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// said is what commands print of a folder: the summary, and the advice.
func said(t *testing.T, dir string) (summary, advice string) {
	t.Helper()
	s := read(t, data.Options{}, dir)
	var b bytes.Buffer
	if err := terminal.Summary(&b, s, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	summary = b.String()
	a, err := advise.Of(s, advise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := terminal.Advice(&b, a, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	return summary, b.String()
}

func wants(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the %s does not say %q:\n%s", what, w, text)
		}
	}
}

// After an interrupted first round the summary names what is pending, whatever was measured before the interrupt.
func TestAnInterruptedFirstRound(t *testing.T) {
	const pending = "Interrupted in round 1: nothing can be compared yet. Continue: sudo tare run quick --out R"
	for measured, want := range map[string]string{
		"bm": pending, "bm vmcn": pending, "vmcn": pending, "bm vm": pending,
		"bm vm cn":    "One round gives no interval for FFmpeg: at least two are needed.",
		"bm vmcn all": "One round gives no interval for FFmpeg: at least two are needed.",
	} {
		f := notebooktest.New(2)
		f.Rounds, f.Ended = 1, "interrupted"
		all := []string{"bm 1/1GB", "bm aa 1/1GB", "cn docker pinned 1/1GB", "cn docker vanilla 1/1GB", "vm qemu kvm pinned 1/1GB", "vmcn qemu tcg pinned 1/1GB"}
		var pending []notebook.Treatment
		for _, words := range all {
			platform, _, _ := strings.Cut(words, " ")
			f.Add(words, 4)
			if !strings.HasSuffix(measured, "all") && !strings.Contains(" "+measured+" ", " "+platform+" ") {
				pending = append(pending, f.Study.Treatments[len(f.Study.Treatments)-1])
				f.Study.Treatments = f.Study.Treatments[:len(f.Study.Treatments)-1]
			}
		}
		dir := f.Write(t)
		f.Study.Treatments = append(f.Study.Treatments, pending...)
		study, err := json.Marshal(f.Study)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "study.json"), study, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		summary, advice := said(t, dir)
		wants(t, "summary of "+measured, summary, want)
		if strings.Contains(summary, "only emulated VMs were measured") {
			t.Errorf("%s: it says that only emulated VMs were measured:\n%s", measured, summary)
		}
		wants(t, "advice of "+measured, advice, "Nothing can be ranked")
	}
}

// Where the summary has no interval, advise recommends nothing: neither what has no bounds nor bare metal without an alternative.
func TestNoAdviceWithoutAnInterval(t *testing.T) {
	f := notebooktest.New(2)
	f.Rounds, f.Noise, f.Study.Design.Trials = 3, 0.9, 1
	f.Add("bm 1/1GB", 1).Add("bm aa 1/1GB", 1).Add("cn docker pinned 1/1GB", 1.2)
	s := read(t, data.Options{}, f.Write(t))
	if r := s.Rows[2]; !math.IsInf(r.RatioHigh, 0) && !math.IsNaN(r.RatioHigh) {
		t.Fatalf("the ratio has an interval, so this tests nothing: %v to %v", r.RatioLow, r.RatioHigh)
	}
	summary, advice := said(t, f.Write(t))
	wants(t, "summary", summary, "3 rounds are too few for an interval for FFmpeg: bare metal varied too much between them.")
	wants(t, "advice", advice, "Nothing can be ranked: its ratio to bare metal has no interval; more rounds or a quieter host would give it one; no other platform's ratio to it has an interval")

	// What has an interval is ranked as ever, with bare metal.
	f = notebooktest.New(2)
	f.Add("bm 1/1GB", 1).Add("bm aa 1/1GB", 1).Add("cn docker pinned 1/1GB", 1.2)
	_, advice = said(t, f.Write(t))
	wants(t, "advice", advice, "Bare metal at 1/1GB: execution time 1.0", "Docker with --cpuset-cpus at 1/1GB")
}

// A metric without a direction is compared, but no text calls a difference a cost, and no command ranks by it.
func TestAMetricWithoutADirection(t *testing.T) {
	folder := func(docker float64) *notebooktest.Folder {
		f := notebooktest.New(2)
		f.Study.Metrics["ffmpeg"] = notebook.Metric{Name: "cpus", Unit: "1", Better: notebook.Neither}
		f.Study.Design = notebook.Design{Floor: 5, Cap: 5, Trials: 1, TimeoutS: 60}
		return f.Add("bm 1/1GB", 2).Add("bm aa 1/1GB", 2).Add("cn docker pinned 1/1GB", docker).Add("cn docker vanilla 1/1GB", 2)
	}
	summary, advice := said(t, folder(1).Write(t))
	wants(t, "summary", summary, "Cpus; neither higher nor lower is better.", "FFmpeg in Docker has ", " % lower cpus with --cpuset-cpus (", "ffmpeg on bench: cpus, neither higher nor lower is better")
	wants(t, "advice", advice, "Nothing can be ranked: cpus has no direction: neither higher nor lower values are better.")
	c, err := compare.From(read(t, data.Options{}, folder(1).Write(t)), read(t, data.Options{}, folder(3).Write(t)), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := terminal.Comparison(&b, c, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	wants(t, "comparison", b.String(), "is higher, 3.00 times as much")
	for what, text := range map[string]string{"summary": summary, "comparison": b.String()} {
		for _, not := range []string{"costs", "worse", "better\n"} {
			if strings.Contains(strings.ReplaceAll(text, "is better\n", ""), not) {
				t.Errorf("the %s says %q:\n%s", what, not, text)
			}
		}
	}
	_, err = advise.Of(read(t, data.Options{}, folder(1).Write(t)), advise.Options{Metric: "cpus"})
	if err == nil || !strings.Contains(err.Error(), "without a direction") {
		t.Errorf("--metric cpus: %v", err)
	}
}

// The first lines of an answer say what its table says, whatever was measured and whatever it is compared with.
func TestTheHeadlineIsTheTables(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(40) {
		for _, against := range []string{"bm", "cn:docker:quota"} {
			f := notebooktest.New(2)
			f.Rounds, f.Noise, f.Seed = 6, 0.012, seed
			f.Study.Design = notebook.Design{Floor: 6, Cap: 6, Trials: 2, TimeoutS: 60, Margin: 0.01 + 0.02*float64(seed%2)}
			keys, err := notebook.ParseReference(against)
			if err != nil {
				t.Fatal(err)
			}
			f.Add("bm 1/1GB", 4).Add("bm aa 1/1GB", 4).Add("cn docker vanilla 1/1GB", 4)
			f.Add("cn docker pinned 1/1GB", 4*(1+0.01*float64(seed%4)))
			s := read(t, data.Options{Baseline: keys}, f.Write(t))
			line := strings.Join(words.Headline(s), " ")
			for _, r := range s.Rows {
				if r.Treatment.Provisioning != notebook.Pinned || r.Doubtful {
					continue
				}
				want := "cannot tell"
				switch v := s.Finding(r); {
				case v == stats.Slower, v == stats.Faster, against != "bm" && (r.RatioLow > 1 || r.RatioHigh < 1):
					want = string(stats.Slower)
					if r.Ratio < 1 {
						want = string(stats.Faster)
					}
				case v == stats.Equivalent:
					want = "by at most"
					if r.RatioHigh <= 1 {
						want = "not slow"
					}
				case r.RatioLow > 1 || r.RatioHigh < 1:
					want = "not shown to be"
				}
				seen[want]++
				if !strings.Contains(line, want) {
					t.Errorf("seed %d against %s: %s is %s, %+v, and the first lines do not say %q: %s", seed, against, r.Treatment.ID, s.Finding(r), r.Quotient(), want, line)
				}
			}
		}
	}
	for _, want := range []string{"cannot tell", "slower", "by at most", "not shown to be"} {
		if seen[want] == 0 {
			t.Errorf("no case has %q: %v", want, seen)
		}
	}
}
