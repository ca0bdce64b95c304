// Package notebooktest makes folders of results for tests: a study with its host, and as many rounds of made-up trials as
// a test needs, be they a dozen or a million.
//
//	f := notebooktest.New(2)
//	f.Add("bm large", 4).Add("cn crun pinned large", 4.2)
//	dir := f.Write(t)
package notebooktest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/notebook"
)

// At is when everything in a folder was, unless the test says otherwise.
var At = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

// Folder is a folder of results in the making. Its fields may be changed until it is written.
type Folder struct {
	Study  notebook.Study
	Host   notebook.Host
	Rounds int                // how many were run; New sets 5
	Mean   map[string]float64 // true value of the metric, in its unit, by treatment
	Noise  float64            // standard deviation of guests, as a share of the mean; trials in a guest have a third of it
	Traced float64            // a traced trial's value, as a multiple of the other's; they are done where Study.Explain names tracers
	Ended  string             // why the last run ended; empty: it has not
	Start  time.Time          // of every guest and trial
	Seed   uint64             // of the noise

	Guest func(*notebook.Guest) // changes a guest before it is written; nil: none
	Trial func(*notebook.Trial) // changes a trial before it is written; nil: none
}

// New is the folder of a study without treatments, of one workload, "ffmpeg", on a host with so many CPUs.
func New(cpus int) *Folder {
	f := &Folder{
		Study: notebook.Study{
			Version: notebook.Version, Tare: "test", Name: "quick", Source: "name: quick\n", Hash: "h", Seed: 1, Created: At,
			Design:  notebook.Design{Floor: 5, Cap: 20, Precision: 0.05, Trials: 3, TimeoutS: 60},
			Metrics: map[string]notebook.Metric{},
			Images:  map[string]notebook.Image{},
		},
		Host:   notebook.Host{ID: "aaaaaaaabbbb", Hostname: "bench", Kernel: "6.18", Arch: "x86_64"},
		Rounds: 5, Mean: map[string]float64{}, Noise: 0.01, Traced: 1.02, Ended: "cap on rounds", Start: At, Seed: 7,
	}
	for i := range cpus {
		f.Host.CPUs = append(f.Host.CPUs, notebook.CPU{ID: i, Core: i})
	}
	return f
}

// Night is the folder of a study that runs every night, without treatments. The folder is of night i, with four rounds and little noise.
func Night(i int) *Folder {
	f := New(4)
	f.Seed, f.Rounds, f.Noise = uint64(i+1), 4, 0.002
	f.Study.Design = notebook.Design{Floor: 4, Cap: 4, Trials: 1, TimeoutS: 60}
	f.Start = time.Date(2026, 10, 1+i, 7, 0, 0, 0, time.UTC)
	return f
}

// Add adds a treatment in words (see Treatment) with the true value of its metric. A workload that is new to the study
// gets a metric, its execution time, and an image.
func (f *Folder) Add(words string, mean float64) *Folder {
	return f.AddTreatment(Treatment(words), mean)
}

// AddTreatment adds a treatment as Add does.
func (f *Folder) AddTreatment(t notebook.Treatment, mean float64) *Folder {
	if _, known := f.Study.Metrics[t.Workload]; !known {
		f.Study.Metrics[t.Workload] = notebook.Metric{Name: "execution time", Unit: "s"}
	}
	if f.Study.Image(t) == (notebook.Image{}) {
		f.Study.Images[t.Workload] = notebook.Image{Reference: "debian", Digest: "sha256:1111111111112222", Input: "sha256:3333"}
	}
	f.Study.Treatments = append(f.Study.Treatments, t)
	f.Mean[t.ID] = mean
	return f
}

// Treatment reads a treatment in words, which become its ID: the workload, where it is not ffmpeg; key=value for its
// parameters (host_cores=N for the host's CPUs); the platform; and in any order after it the engine, "kvm" or "tcg",
// one of notebook.Provisionings, a network, a layer of isolation, "aa" and the instance type. It panics at words that are
// none of these.
//
//	cpu n=4 vm qemu kvm pinned 2/4GB
func Treatment(words string) notebook.Treatment {
	t := notebook.Treatment{ID: words, Workload: "ffmpeg"}
	for _, w := range strings.Fields(words) {
		key, value, isParam := strings.Cut(w, "=")
		size, notSize := notebook.ParseInstance(w)
		switch {
		case key == "host_cores" && isParam:
			n, err := strconv.Atoi(value)
			if err != nil {
				panic(fmt.Sprintf("notebooktest: treatment %q: %v", words, err))
			}
			t.HostCores = n
		case isParam && (key == "devices" || key == "huge-pages" || key == "boot" || w == "cache=none"), w == "no-kaslr", w == "no-thp":
			t.Machine = strings.TrimSpace(t.Machine + " " + w)
		case isParam:
			of := &t.Params
			if f, is := notebook.FactorNamed(key); is && !f.IsField() {
				of = &t.Factors
			}
			if *of == nil {
				*of = map[string]string{}
			}
			(*of)[key] = value
		case slices.Contains([]string{notebook.BM, notebook.CN, notebook.VM, notebook.VMCN}, w):
			t.Platform = w
		case slices.Contains(notebook.Provisionings, w):
			t.Provisioning = w
		case w == notebook.KVM || w == notebook.KVMEmulated || w == notebook.TCG:
			t.Accelerator = w
		case w == notebook.NetBridge || w == notebook.NetHost || w == notebook.NetNone:
			t.Network = w
		case w == notebook.IsolationFull || slices.Contains(notebook.Layers, w):
			t.Isolation = w
		case w == "aa":
			t.AA = true
		case notSize == nil:
			t.Instance = size
		case t.Platform == "":
			t.Workload = w
		case t.Engine == "":
			t.Engine = w
		default:
			panic(fmt.Sprintf("notebooktest: treatment %q: %q is not a word of a treatment", words, w))
		}
	}
	if t.Platform == "" || t.Instance.Cores == 0 {
		panic(fmt.Sprintf("notebooktest: treatment %q: must have a platform and an instance type", words))
	}
	return t
}

// Write writes the folder and gives its path, in a temporary folder of the test's. However many trials there are, little
// memory is used.
func (f *Folder) Write(t testing.TB) string {
	t.Helper()
	return write(t, f.Study, f.Host, f.records())
}

// WriteTo writes the folder at a path where there is nothing yet.
func (f *Folder) WriteTo(dir string) error { return writeTo(dir, f.Study, f.Host, f.records()) }

// Write writes the folder of a study with these records, each a notebook.Guest, Trial or Session, and gives its path.
func Write(t testing.TB, s notebook.Study, h notebook.Host, records ...any) string {
	t.Helper()
	return write(t, s, h, slices.Values(records))
}

// One is a guest of a round and its only trial, of this value, for Write and Append.
func One(round int, treatment string, value float64) (notebook.Guest, notebook.Trial) {
	id := fmt.Sprintf("r%d-%s", round, treatment)
	return notebook.Guest{ID: id, Treatment: treatment, Round: round, Start: At},
		notebook.Trial{Treatment: treatment, Round: round, Guest: id, Start: At, Value: value, ElapsedS: value, HostS: value}
}

// records are all lines of the folder, in the order in which a run would write them.
func (f *Folder) records() iter.Seq[any] {
	return func(yield func(any) bool) {
		if !yield(notebook.Session{Time: f.Start, Event: "start"}) {
			return
		}
		g := rand.New(rand.NewPCG(f.Seed, uint64(len(f.Study.Treatments))))
		for round := range f.Rounds {
			for _, tr := range f.Study.Treatments {
				if !f.guest(g, round, tr, yield) {
					return
				}
			}
		}
		if f.Ended != "" {
			yield(notebook.Session{Time: f.Start, Event: "end", Reason: notebook.TextMessage(f.Ended)})
		}
	}
}

// guest gives a guest and its trials.
func (f *Folder) guest(g *rand.Rand, round int, tr notebook.Treatment, yield func(any) bool) bool {
	guest := notebook.Guest{
		ID: fmt.Sprintf("r%d-%s", round, tr.ID), Treatment: tr.ID, Round: round, Start: f.Start, Kernel: f.Host.Kernel,
		RulerCostS: 420e-6 + 1e-6*float64(round), RulerCostN: 20, RoundTripS: 80e-6,
	}
	if f.Guest != nil {
		f.Guest(&guest)
	}
	if !yield(guest) {
		return false
	}
	level := f.Mean[tr.ID] * (1 + f.Noise*g.NormFloat64())
	for i := -f.Study.Design.Warmups; i < f.Study.Design.Trials; i++ {
		x := notebook.Trial{Treatment: tr.ID, Round: round, Guest: guest.ID, Index: max(i, 0), Warmup: i < 0, Start: f.Start}
		x.Value = level * (1 + f.Noise/3*g.NormFloat64())
		x.ElapsedS, x.HostS = x.Value, x.Value
		if !f.trial(x, yield) {
			return false
		}
		if i >= 0 && len(f.Study.Explain) > 0 {
			x.Traced = true
			x.Value *= f.Traced
			x.ElapsedS, x.HostS = x.Value, x.Value
			x.Trace = &notebook.Trace{Looked: f.Study.Explain, Wall: map[string]float64{notebook.WallUser: x.ElapsedS}}
			if !f.trial(x, yield) {
				return false
			}
		}
	}
	return true
}

func (f *Folder) trial(x notebook.Trial, yield func(any) bool) bool {
	if f.Trial != nil {
		f.Trial(&x)
	}
	return yield(x)
}

func write(t testing.TB, s notebook.Study, h notebook.Host, records iter.Seq[any]) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	if err := writeTo(dir, s, h, records); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeTo(dir string, s notebook.Study, h notebook.Host, records iter.Seq[any]) error {
	w, err := notebook.Create(dir, s, h)
	if err != nil {
		return err
	}
	return errors.Join(w.Close(), add(dir, records))
}

// Append adds records to a folder, each a notebook.Guest, Trial or Session.
func Append(t testing.TB, dir string, records ...any) {
	t.Helper()
	if err := add(dir, slices.Values(records)); err != nil {
		t.Fatal(err)
	}
}

// add writes past the notebook, which syncs each line to the disk: that would take most of the tests' time.
func add(dir string, records iter.Seq[any]) error {
	files := map[string]*json.Encoder{}
	var flush []func() error
	for _, name := range []string{"guests", "trials", "sessions"} {
		f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		b := bufio.NewWriterSize(f, 1<<16)
		flush = append(flush, b.Flush)
		files[name] = json.NewEncoder(b)
	}
	for r := range records {
		var name string
		switch r.(type) {
		case notebook.Guest:
			name = "guests"
		case notebook.Trial:
			name = "trials"
		case notebook.Session:
			name = "sessions"
		default:
			return fmt.Errorf("notebooktest: a %T cannot be written; use a notebook.Guest, Trial or Session", r)
		}
		if err := files[name].Encode(r); err != nil {
			return err
		}
	}
	for _, f := range flush {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Million is a folder of a million trials of 10 treatments, half of them traced, with commands, usage and accounts as real ones have
// them.
func Million() *Folder {
	f := New(1)
	f.Rounds, f.Study.Design = 25_000, notebook.Design{Floor: 25_000, Cap: 25_000, Trials: 2, TimeoutS: 60}
	f.Study.Explain = notebook.DefaultTracers
	for i, words := range []string{"bm 1/1GB", "bm aa 1/1GB", "cn crun pinned 1/1GB", "cn docker vanilla 1/1GB", "cn crun vanilla 4/1GB",
		"cn crun vanilla 5/1GB", "cn crun vanilla 6/1GB", "cn crun vanilla 7/1GB", "cn crun vanilla 8/1GB", "cn crun vanilla 9/1GB"} {
		t := Treatment(words)
		t.ID = fmt.Sprint("t", i)
		f.AddTreatment(t, 1+0.1*float64(i))
	}
	at := At
	f.Trial = func(t *notebook.Trial) {
		at = at.Add(time.Second)
		t.Start, t.Command = at, []string{"/.tare/work/run"}
		t.Usage = notebook.Usage{UserS: t.Value, SystemS: 0.01, MaxRSS: 1 << 20, MinFlt: 321, VCSw: 12, IVCSw: 3}
		if t.Traced {
			t.Trace.Wall = map[string]float64{notebook.WallUser: t.Value - 0.02, notebook.WallSystem: 0.01, notebook.WallCore: 0.01}
			t.Trace.Figures = map[string]float64{"elapsed_s": t.Value, "run_s": t.Value - 0.01, "switches": 15, "user_s": t.Value - 0.02, "system_s": 0.01, "minor_faults": 321}
		}
	}
	return f
}

// Config is the config of a study of the named kind, in place. It panics if the study is of another kind or cannot be read.
func Config[T any](s notebook.Study, kind string) *T {
	c, err := notebook.ConfigOf[T](s, kind)
	if err != nil || c == nil {
		panic(fmt.Sprintf("the study is of the kind %q, want %q: %v", s.Kind, kind, err))
	}
	return c
}

// Seen is what a trial recorded. It panics if that is not a T. If the trial recorded nothing, Seen is the zero value.
func Seen[T any](t *notebook.Trial) T {
	v, err := notebook.SeenOf[T](t)
	if err != nil {
		panic(err)
	}
	return v
}
