//go:build linux

// Package arrivals times the starts of containers under load. The containers are made ahead, and their starts are requested at a
// rate, in an open loop (paper "characterization", section 5.1).
package arrivals

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/pace"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/arrivals"
)

// Kind is arrivals as a kind of study.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Once: "containers are started once", Untraced: "nothing that runs in the containers is timed", LoadHere: "containers are started under load from this host",
		Search: true, Crowd: true, Untimed: true, OwnNetwork: true,
	},
	Part: measure.PartOf(file.config),
}

// file is the kind's part of a study file.
type file struct {
	Rates   []int    `yaml:"rates" jsonschema:"required"` // requests a second; each rate makes a treatment
	Spacing []string `yaml:"spacing,omitempty"`           // how requests are spaced; each value makes a configuration; default: even
	From    []string `yaml:"from,omitempty"`              // what a request starts; each value makes a configuration; default: created
	For     string   `yaml:"for,omitempty"`               // how long requests arrive; default 10s
	Least   int      `yaml:"least,omitempty"`             // least number of requests, if the rate makes fewer in that time; default 10
	Most    int      `yaml:"most,omitempty"`              // greatest number of requests, if the rate makes more; default 100
	Timeout string   `yaml:"timeout,omitempty"`           // the time after which an engine or an application counts as silent; default 30s
	Profile bool     `yaml:"profile,omitempty"`           // whether to sample where the time goes

	Published []record.Published `yaml:"published,omitempty"`
}

// Allowed implements yamlfile.Limited.
func (file) Allowed() map[string][]string {
	return map[string][]string{"spacing": notebook.Spacings, "from": notebook.Froms}
}

const (
	mostStarts   = 1000
	mostPerS     = 8000             // more than the client can make with one core (scripts/bench ceiling)
	together     = 4                // containers that are made or removed at the same time
	leadIn       = time.Second / 10 // before the first request
	leastGuest   = 24 * notebook.MiB
	leastThreads = 32 // of a container, including the engine's processes that hold it
	keptThreads  = 512
)

func (f file) config() (measure.Config, error) {
	out := config{world: host{}, Config: record.Config{Least: cmp.Or(f.Least, 10), Most: cmp.Or(f.Most, 100), Profile: f.Profile, Published: f.Published}}
	if len(f.Rates) == 0 {
		return nil, measure.Wrong("rates", "is missing: write numbers like [1, 2, 4, 8]")
	}
	for i, r := range f.Rates {
		if r < 1 || r > mostPerS || i > 0 && r <= f.Rates[i-1] {
			return nil, measure.Wrong("rates", "%v: must be numbers from 1 to %d, each greater than the one before", f.Rates, mostPerS)
		}
		out.rates = append(out.rates, strconv.Itoa(r))
	}
	if out.Least < 2 || out.Most > mostStarts || out.Least > out.Most {
		return nil, measure.Wrong("least", "%d to %d requests: must be from 2 to %d, and least at most as large as most", out.Least, out.Most, mostStarts)
	}
	if err := measure.Refused(f); err != nil {
		return nil, err
	}
	out.spacing, out.from = f.Spacing, f.From
	for _, t := range []struct {
		name, text string
		to         *float64
	}{{"for", cmp.Or(f.For, "10s"), &out.ForS}, {"timeout", cmp.Or(f.Timeout, "30s"), &out.TimeoutS}} {
		d, err := time.ParseDuration(t.text)
		if err != nil || d < time.Second || d > time.Hour {
			return nil, measure.Wrong(t.name, "%q: must be a time from 1s to 1h", t.text)
		}
		*t.to = d.Seconds()
	}
	for _, p := range f.Published {
		if p.Rate < 1 || !(p.Mean > 0) || !(p.P95 > 0) {
			return nil, measure.Wrong("published", "%+v: must be {rate: …, mean: …, p95: …} with times in seconds", p)
		}
	}
	return out, nil
}

// config is how a study measures arrivals.
type config struct {
	measure.Defaults
	record.Config
	rates, spacing, from []string
	world                world
}

// world is what a trial needs in addition to engines.
type world interface {
	ask(ctx context.Context, g crowd.Guest, at netip.AddrPort, q workload.Question) error
	sample(k engine.Kind) (profiling, error)
}

// profiling is a running sampling of all CPUs of the host.
type profiling interface {
	// Stop ends the sampling and returns what it saw.
	Stop() (*record.Profile, error)
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config.
func (c config) Identity(all []*workload.Ready) []any {
	asked := map[string]*workload.Question{}
	for _, r := range all {
		if r.Workload.Load != nil {
			asked[r.Workload.Name] = r.Workload.Load.First
		}
	}
	return []any{&c.Config, asked}
}

// Factors implements measure.Config.
func (c config) Factors() []measure.Factor {
	return []measure.Factor{{Of: notebook.FactorRate, Values: c.rates}, {Of: notebook.FactorSpacing, Values: c.spacing}, {Of: notebook.FactorFrom, Values: c.from}}
}

// Fits implements measure.Config.
func (config) Fits(platform string, networks, isolation []string) error {
	if platform != notebook.CN || len(networks)+len(isolation) > 0 {
		return errors.New("this study can only measure containers in their engine's own network: leave out networks: and isolation:, and write platform: cn")
	}
	return nil
}

// Accepts implements measure.Config.
func (config) Accepts(w *workload.Workload) error {
	if w.System || w.Stays || w.Service != nil && w.Load.First == nil {
		return errors.New("gives no first answer: must be a command that ends, or a service whose load: has first: set")
	}
	return nil
}

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return record.StartMean, c.Also()
}

// LeavesOut implements measure.Config.
func (config) LeavesOut(t notebook.Treatment, k engine.Kind, w *workload.Workload) *notebook.Message {
	switch {
	case ofSnapshot(t) && k.Unsaved != "":
		return notebook.ErrorMessage(k.Unsupported("a saved state", k.Unsaved))
	case ofSnapshot(t) && w.Service != nil:
		return notebook.Say("service-not-saved")
	case !k.Ahead:
		return notebook.Say("made-and-started-in-one")
	case w.Service != nil && k.Lacks(engine.NoHostProcesses):
		return notebook.Say("service-unreachable")
	}
	return nil
}

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{measure.Single{Bench: b, Cell: of}, c}
}

type subject struct {
	measure.Single
	config
}

// Make implements measure.Subject. It starts a first container in the same way as all others. The others then find whatever the
// host keeps after a first start, and the limits of the first are checked before the others are made.
func (s *subject) Make(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, crowd.ProvisionTimeout)
	defer cancel()
	a, err := s.Create(ctx, crowd.Want{Treatment: s.Treatment, ID: s.ID, Work: s.Ready})
	if err != nil {
		return err
	}
	g, err := startAndMeet(ctx, a)
	if err != nil {
		return errors.Join(err, crowd.Destroy(ctx, a))
	}
	s.Made(g, nil)
	return nil
}

func startAndMeet(ctx context.Context, a measure.Ahead) (crowd.Guest, error) {
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	g, err := a.Meet(ctx)
	if err == nil {
		err = a.InForce()
	}
	return g, err
}

// Trial implements measure.Subject: it makes containers ahead and starts them at the treatment's rate.
func (s *subject) Trial(ctx context.Context, _ measure.Step) (tr notebook.Trial, over bool, err error) {
	tr.Start = time.Now().UTC()
	tr.Command = s.Ready.Workload.Command
	rate, err := strconv.Atoi(notebook.FactorRate.Of(s.Treatment))
	if err != nil {
		return tr, true, err // the plan made the value
	}
	b := &record.Bringup{Offered: float64(rate), Planned: s.Starts(rate)}
	seen := record.Seen{Bringup: b}
	defer func() { tr.Seen = seen }()
	u := &bringUp{subject: s, guests: make([]started, b.Planned)}
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		err = errors.Join(err, u.remove(ctx))
	}()
	if tr.Failure = u.create(ctx); tr.Failure != nil || ctx.Err() != nil {
		return tr, true, nil
	}
	b.CreatedS = time.Since(tr.Start).Seconds()
	if u.room, err = newRoom(); err != nil {
		tr.Failure = notebook.ErrorMessage(err)
		return tr, true, nil
	}
	var profiling profiling
	if s.Profile {
		if profiling, err = s.world.sample(s.Engine); err != nil {
			tr.Warnings, err = append(tr.Warnings, notebook.Say("no-profile", "cause", err)), nil
		}
	}
	if ofSnapshot(s.Treatment) {
		unix.Sync() // otherwise the saved states would be written to disk during the requests
	}
	before := ownTime()
	u.begin = time.Now().Add(leadIn)
	u.starts = make([]record.Request, b.Planned)
	pacing, stop := context.WithCancelCause(ctx)
	u.stop = stop
	n := pace.Issue(pacing, u.begin, record.Times(notebook.FactorSpacing.Of(s.Treatment), rate, b.Planned, rand.ExpFloat64), u.one(ctx))
	b.ClientS, b.OfS = (ownTime() - before).Seconds(), time.Since(u.begin).Seconds()
	if profiling != nil {
		if seen.Profile, err = profiling.Stop(); err != nil {
			tr.Warnings, err = append(tr.Warnings, notebook.Say("no-profile", "cause", err)), nil
		}
	}
	for i, r := range u.starts[:n] {
		if !u.guests[i].refused {
			b.Starts = append(b.Starts, r)
		}
	}
	if n = len(b.Starts); n < b.Planned && ctx.Err() == nil {
		b.Stopped = notebook.ErrorMessage(context.Cause(pacing))
		tr.Warnings = append(tr.Warnings, notebook.Say("requests-stopped", "made", n, "planned", b.Planned, "cause", b.Stopped))
	}
	stop(nil)
	if ctx.Err() != nil {
		return tr, true, nil // the caller checks ctx
	}
	tr.Figures = b.Figures()
	tr.Value = tr.Figures[record.StartMean.Name]
	maps.Copy(tr.Figures, seen.Profile.Figures())
	failed := 0
	var first *notebook.Message
	for i, r := range b.Starts {
		if r.Failure != nil {
			if failed++; first == nil {
				first = notebook.Say("of-container", "container", i+1, "cause", r.Failure)
			}
		}
	}
	switch {
	case failed > 0: // a mean over the others only would be that of a better engine
		tr.Failure = notebook.Say("starts-failed", "failed", failed, "of", n, "rate", rate, "first", first)
	default:
		tr.Failure = u.inForce()
	}
	tr.Warnings = append(tr.Warnings, clientLimits(tr.Figures)...)
	return tr, true, nil
}
