package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The text, the figure and the exit status of two folders, where a container of the second takes 5 % longer.
func TestCompare(t *testing.T) {
	folder := func(seed uint64, container float64) string {
		f := notebooktest.New(4)
		f.Seed, f.Rounds, f.Noise = seed, 10, 0.003
		f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
		return f.Add("bm large", 1).Add("cn crun pinned large", container).Write(t)
	}
	before, after := folder(1, 1.1), folder(2, 1.155)
	faster := func() string { // all of the host, by a tenth
		f := notebooktest.New(4)
		f.Seed, f.Rounds, f.Noise, f.Study.Design = 3, 10, 0.003, notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
		return f.Add("bm large", 0.9).Add("cn crun pinned large", 0.9*1.1).Write(t)
	}()
	other := notebooktest.New(4).Add("bm large", 1).Write(t)
	out := filepath.Join(t.TempDir(), "changes.svg")
	for _, c := range []struct {
		args   []string
		status exit
	}{
		{[]string{before, after}, 0},
		{[]string{before, after, "--fail-if", "ratio>1.03", "--figure", out}, failed},
		{[]string{before, after, "--fail-if", "ratio>1.06", "--format", "json"}, 0},
		{[]string{faster, before, "--fail-if", "ratio>1.03"}, 0}, // the host's change is nobody's
		{[]string{after, before, "--fail-if", "ratio < 0.97", "--format", "markdown"}, failed},
		{[]string{before, other, "--fail-if", "ratio>9", "--margin", "0.5%"}, failed}, // a treatment is gone
	} {
		said, err := output(t, append([]string{"compare"}, c.args...))
		var status exit
		if errors.As(err, &status); status != c.status || err != nil && status == 0 || len(said) == 0 {
			t.Errorf("%q: %v, want status %d; it said %s", c.args, err, c.status, said)
		}
	}
	// A bandwidth that is less than before is a loss.
	rate := func(seed uint64, share float64) string {
		f := notebooktest.Stream()
		f.Seed = seed
		f.Mean["stream cn docker pinned 2/4GB"] *= share
		return f.Write(t)
	}
	more, less := rate(1, 1), rate(2, 0.9)
	for _, c := range []struct {
		args   []string
		status exit
	}{
		{[]string{more, less, "--fail-if", "ratio>1.03"}, failed},
		{[]string{more, less, "--fail-if", "ratio<0.97"}, 0},
		{[]string{less, more, "--fail-if", "ratio>1.03"}, 0},
		{[]string{less, more, "--fail-if", "ratio<0.97"}, failed},
	} {
		said, err := output(t, append([]string{"compare"}, c.args...))
		var status exit
		if errors.As(err, &status); status != c.status || err != nil && status == 0 {
			t.Errorf("%q: %v, want status %d; it said %s", c.args, err, c.status, said)
		}
	}
	var told struct {
		Differences []string
		Changes     []struct {
			Treatment, Verdict string
			Relative           bool
			Ratio, Low, High   float64
		}
		Host []struct{ Treatment string }
	}
	said, err := output(t, []string{"compare", before, after, "--format", "json"})
	if err == nil {
		err = json.Unmarshal(said, &told)
	}
	if err != nil || told.Differences == nil || len(told.Changes) != 1 || len(told.Host) != 1 || told.Host[0].Treatment != "bm large" {
		t.Fatalf("%v: %s", err, said)
	}
	if x := told.Changes[0]; x.Treatment != "cn crun pinned large" || !x.Relative || x.Verdict != "slower" || !(x.Low < 1.05 && x.High > 1.05 && x.Low < x.Ratio) {
		t.Errorf("%+v", x)
	}
	if svg, err := os.ReadFile(out); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("the figure: %v, %.100s", err, svg)
	}
}

// output is what a command line writes to standard output.
func output(t *testing.T, args []string) ([]byte, error) {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = stdout }()
	root := rootCommand()
	root.SetArgs(args)
	failure := root.ExecuteContext(t.Context())
	said, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return said, failure
}

// Two folders with different references are compared by one: bare metal, unless a flag names another.
func TestCompareWithOneReference(t *testing.T) {
	folder := func(against string) string {
		f := notebooktest.New(2)
		f.Study.Design.Against = against
		return f.Add("bm large", 4).Add("cn crun pinned large", 4.4).Add("vm qemu kvm pinned large", 5).Write(t)
	}
	plain, set, other := folder(""), folder("cn:set"), folder("cn:set")
	for _, c := range []struct {
		old, new string
		named    notebook.Reference
		want     notebook.Reference
	}{
		{plain, set, nil, nil},
		{set, other, nil, notebook.Reference{"platform": "cn", "provisioning": "pinned"}},
		{plain, set, notebook.Reference{"platform": "vm"}, notebook.Reference{"platform": "vm"}},
	} {
		old, new, err := readBoth(c.old, c.new, data.Options{Baseline: c.named})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(old.Baseline, c.want) || !maps.Equal(new.Baseline, c.want) {
			t.Errorf("the references are %v and %v, want %v", old.Baseline, new.Baseline, c.want)
		}
	}
}
