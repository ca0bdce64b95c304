package explain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
)

var (
	half  = notebook.Instance{Name: "0.5/512MB", Cores: 0.5, Memory: 512 << 20}
	one   = notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	large = notebook.Instance{Name: "large", Cores: 2, Memory: 8 << 30}
	at    = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
)

// wall is what a trial's time truly goes on; seconds by category.
type wall map[string]float64

func (w wall) sum() (all float64) {
	for _, k := range notebook.Walls {
		all += w[k]
	}
	return all
}

// lab makes a folder of results with known true values.
type lab struct {
	study  notebook.Study
	host   notebook.Host
	rounds int
	truth  map[string]wall // by treatment
	noise  float64         // of a trial's parts, as a share
	cost   float64         // of the tracers, as a share; attributed to the kernel
	unseen float64         // share of the time that the tracers do not see
	edit   func(*notebook.Trial)
}

func newLab() *lab {
	return &lab{
		study: notebook.Study{
			Tare: "test", Name: "quick", Hash: "h", Seed: 1, Created: at, Explain: notebook.DefaultTracers,
			Design:  notebook.Design{Floor: 8, Cap: 8, Trials: 2, TimeoutS: 60},
			Metrics: map[string]notebook.Metric{"cpu": {Name: "execution time", Unit: "s"}},
			Images:  map[string]notebook.Image{"cpu": {Reference: "debian", Digest: "sha256:1111"}},
		},
		host: notebook.Host{ID: "aaaa", Hostname: "bench", CPUs: []notebook.CPU{{ID: 0}, {ID: 1}}}, rounds: 8,
		truth: map[string]wall{}, noise: 0.01, cost: 0.02,
	}
}

// add adds a treatment, written as "cn docker vanilla" or "vm qemu tcg vanilla".
func (l *lab) add(words string, i notebook.Instance, w wall) *lab {
	t := notebook.Treatment{ID: words + " " + i.Name, Workload: "cpu", Instance: i}
	for n, f := range strings.Fields(words) {
		switch {
		case n == 0:
			t.Platform = f
		case f == notebook.Vanilla || f == notebook.Pinned:
			t.Provisioning = f
		case f == notebook.TCG || f == notebook.KVM:
			t.Accelerator = f
		case f == "aa":
			t.AA = true
		default:
			t.Engine = f
		}
	}
	l.study.Treatments = append(l.study.Treatments, t)
	l.truth[t.ID] = w
	return l
}

// trials are one guest's trials as the folder has them, in order.
func (l *lab) trials(g *rand.Rand, round int, t notebook.Treatment) (all []notebook.Trial) {
	guest := 1 + l.noise*g.NormFloat64()
	for i := range 2 * l.study.Design.Trials {
		x := notebook.Trial{Treatment: t.ID, Round: round, Guest: fmt.Sprintf("r%d-%s", round, t.ID), Index: i / 2, Traced: i%2 == 1, Start: at}
		w := wall{}
		for _, k := range notebook.Walls {
			w[k] = l.truth[t.ID][k] * guest * (1 + l.noise*g.NormFloat64())
		}
		if x.Traced {
			w[notebook.WallSystem] += l.cost * w.sum()
		}
		x.ElapsedS = w.sum()
		x.Value, x.HostS = x.ElapsedS, x.ElapsedS
		x.Usage.UserS, x.Usage.SystemS = w[notebook.WallUser], w[notebook.WallSystem]
		if x.Traced {
			for k := range w {
				w[k] *= 1 - l.unseen
			}
			throttled := w[notebook.WallThrottled]
			x.Trace = &notebook.Trace{Looked: l.study.Explain, Wall: w, Figures: map[string]float64{
				"elapsed_s": x.ElapsedS, "switches": 100 * x.ElapsedS, "migrations": 2, "throttled_s": throttled, "user_s": x.Usage.UserS,
			}, Spread: []notebook.Distribution{
				{Role: notebook.RoleWork, What: notebook.RunQueue, Unit: "s", Counts: append(make([]int64, 12), 90, 0, 9, 3), Sum: 0.001},
				{Role: notebook.RoleWork, What: notebook.OnCPU, Unit: "s", Counts: []int64{1, 2, 3}, Sum: 1},
			}}
			if throttled > 0 {
				x.Trace.Figures["periods"], x.Trace.Figures["throttled_periods"] = 30, 27
			}
		}
		if l.edit != nil {
			l.edit(&x)
		}
		all = append(all, x)
	}
	return all
}

func (l *lab) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	w, err := notebook.Create(dir, l.study, l.host)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var guests, trials bytes.Buffer
	g := rand.New(rand.NewPCG(3, uint64(len(l.study.Treatments))))
	for round := range l.rounds {
		for _, tr := range l.study.Treatments {
			for i, x := range l.trials(g, round, tr) {
				if i == 0 {
					if err := json.NewEncoder(&guests).Encode(notebook.Guest{ID: x.Guest, Treatment: tr.ID, Round: round, Start: at}); err != nil {
						t.Fatal(err)
					}
				}
				if err := json.NewEncoder(&trials).Encode(x); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, b := range map[string][]byte{"guests.jsonl": guests.Bytes(), "trials.jsonl": trials.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rewrite writes other trials of the same study into its folder.
func (l *lab) rewrite(t testing.TB, dir string, g *rand.Rand) {
	t.Helper()
	var trials bytes.Buffer
	for round := range l.rounds {
		for _, tr := range l.study.Treatments {
			for _, x := range l.trials(g, round, tr) {
				if err := json.NewEncoder(&trials).Encode(x); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), trials.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dirs ...string) *explain.Accounts {
	t.Helper()
	a, err := readAll(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func find(t *testing.T, all []*explain.Account, of string) *explain.Account {
	t.Helper()
	i := slices.IndexFunc(all, func(a *explain.Account) bool { return label(a) == of })
	if i < 0 {
		t.Fatalf("no account of %q", of)
	}
	return all[i]
}

// quick is a study as the issue has it: a container throttled on purpose, one pinned, one with half a core, an
// emulated VM.
func quick() *lab {
	bm := wall{notebook.WallUser: 2, notebook.WallSystem: 0.05, notebook.WallBlock: 0.02}
	l := newLab().add("bm", one, bm).add("bm aa", one, bm)
	l.add("cn docker vanilla", one, wall{notebook.WallUser: 2, notebook.WallSystem: 0.08, notebook.WallThrottled: 1, notebook.WallBlock: 0.02})
	l.add("cn docker pinned", one, wall{notebook.WallUser: 2, notebook.WallSystem: 0.05, notebook.WallBlock: 0.02})
	l.add("cn runc vanilla", half, wall{notebook.WallUser: 2, notebook.WallSystem: 0.06, notebook.WallThrottled: 2.1, notebook.WallBlock: 0.02})
	l.add("vm qemu tcg vanilla", one, wall{notebook.WallUser: 22, notebook.WallSystem: 3, notebook.WallOther: 0.5, notebook.WallHypervisor: 2})
	l.host.Virtualization = "kvm"
	return l
}

// readAll reads folders and makes their accounts.
func readAll(dirs ...string) (*explain.Accounts, error) {
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		return nil, err
	}
	return explain.From(s)
}

// label names an account's treatment as these tests do: "cn docker vanilla 1/1GB".
func label(a *explain.Account) string {
	t := a.Row.Treatment
	t.Network = ""
	name := strings.Join(strings.Fields(strings.Join([]string{words.Claimed(t), t.Accelerator}, " ")), " ")
	if t.AA {
		name += " again (A/A)"
	}
	return name + " " + t.Instance.Name
}

func sentence(a *explain.Account) string { return words.Account(&data.Summary{}, a) }
