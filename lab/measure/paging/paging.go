//go:build linux

// Package paging reads the page tables of several guests of a treatment that work on the same cores, or counts their page faults
// (paper "characterization", section 5.2).
package paging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/memory"
	"tare/lab/pagetable"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/paging"
)

// Kind is paging as a kind of study.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Once: "the memory of guests is read once", Untraced: "the study does not measure time, so tracers have nothing to explain", LoadHere: "requests to several services come from this host",
		Search: true, Crowd: true, Untimed: true, Stays: true,
	},
	Part: measure.PartOf(file.config),
}

// file is the kind's part of a study file.
type file struct {
	Guests    int      `yaml:"guests,omitempty"`     // default 4
	Initial   string   `yaml:"initial,omitempty"`    // a time: how long the last guest has worked when the initial state is read; default 1s
	Steady    string   `yaml:"steady,omitempty"`     // page tables are read in the initial state, and after this time under load; 0s: only in the initial state
	Faults    string   `yaml:"faults,omitempty"`     // page faults are counted for this time under load; for work that ends by itself, from its beginning to its end
	Later     string   `yaml:"later,omitempty"`      // after faults:, so much later under load, page faults are counted for as long once more
	Addresses []string `yaml:"addresses,omitempty"`  // each makes a treatment
	HugePages []string `yaml:"huge_pages,omitempty"` // each makes a treatment
}

// Allowed implements yamlfile.Limited.
func (file) Allowed() map[string][]string {
	return map[string][]string{"addresses": notebook.Addresses, "huge_pages": notebook.HugePages}
}

const (
	usualGuests  = 4           // as in the paper
	usualInitial = time.Second // by then the engine's hello and the program's start are over
	longestState = 24 * time.Hour
	mostGuests   = 64 // the counting of repeated faults can distinguish this many
)

func (f file) config() (measure.Config, error) {
	out := config{Config: record.Config{Guests: f.Guests, Tables: f.Steady != "", InitialS: usualInitial.Seconds()}, addresses: f.Addresses, hugePages: f.HugePages, eyes: host{}}
	if out.Guests == 0 {
		out.Guests = usualGuests
	}
	if out.Guests < 1 || out.Guests > mostGuests {
		return nil, measure.Wrong("guests", "%d: must be from 1 to %d", f.Guests, mostGuests)
	}
	if f.Steady == "" && f.Faults == "" {
		return nil, errors.New("steady: and faults: are missing: write steady: 2m to read page tables, or faults: 10s to count page faults")
	}
	if f.Later != "" && (f.Faults == "" || f.Steady != "") {
		return nil, measure.Wrong("later", "%q: page faults are counted once more only in a study with faults: and without steady:", f.Later)
	}
	for _, t := range []struct {
		name, text string
		least      time.Duration
		to         *float64
	}{{"initial", f.Initial, 0, &out.InitialS}, {"steady", f.Steady, 0, &out.SteadyS}, {"faults", f.Faults, time.Second / 10, &out.FaultsS}, {"later", f.Later, 0, &out.LaterS}} {
		if t.text == "" {
			continue
		}
		d, err := time.ParseDuration(t.text)
		if err != nil || d < t.least || d > longestState {
			return nil, measure.Wrong(t.name, "%q: must be a time from %v to %v, like 10s or 2m", t.text, t.least, longestState)
		}
		*t.to = d.Seconds()
	}
	return out, measure.Refused(f)
}

// config is how a study reads page tables and counts page faults.
type config struct {
	measure.Defaults
	record.Config
	addresses, hugePages []string
	eyes                 eyes
}

// eyes see the pages of guests.
type eyes interface {
	tables(ctx context.Context, guests []crowd.Guest, t notebook.Treatment, system bool, uses *memory.Uses) (notebook.PageTables, error)
	// uses begins to see which page-table entries the processor uses. An error says why this host does not show it.
	uses() (uses, error)
	faults(guests []crowd.Guest, t notebook.Treatment, system bool) (faulting, error)
	// making begins to see the page faults of the processes with which an engine makes guests.
	making(k engine.Kind) (making, error)
}

// making is a running observation of the page faults of what makes guests.
type making interface {
	faulting
	// Making says which guest, from 0, is made from now on.
	Making(guest int) error
}

// uses see which page-table entries of guests the processor uses.
type uses interface {
	// Since returns the entries that were used since the last call, or since they were made.
	Since(guests []crowd.Guest, t notebook.Treatment, system bool) (pagetable.Used, error)
	Close()
}

// faulting is a running observation of guests' page faults.
type faulting interface {
	// Stop ends the observation and returns what it saw.
	Stop() (notebook.PageFaults, error)
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config.
func (c config) Identity([]*workload.Ready) []any { return []any{&c.Config} }

// Factors implements measure.Config.
func (c config) Factors() []measure.Factor {
	return []measure.Factor{{Of: notebook.FactorAddresses, Values: c.addresses}, {Of: notebook.FactorHugePages, Values: c.hugePages}}
}

// Fits implements measure.Config.
func (config) Fits(platform string, _, _ []string) error {
	if platform != notebook.BM && platform != notebook.CN {
		return fmt.Errorf("the host does not see the processes in a guest of %s: must be bm or cn", platform)
	}
	return nil
}

// Metrics implements measure.Config.
func (c config) Metrics(w *workload.Workload, _ []string) (notebook.Metric, []notebook.Metric) {
	return c.Config.Metrics(ends(w))
}

// Possible implements measure.Config.
func (c config) Possible() error {
	if c.FaultsS == 0 {
		return nil
	}
	f, err := c.eyes.faults(nil, notebook.Treatment{}, false)
	if err == nil {
		_, err = f.Stop()
	}
	if err != nil {
		return &notebook.Error{Says: notebook.Say("faults-unseen", "cause", err)}
	}
	return nil
}

// LeavesOut implements measure.Config.
func (c config) LeavesOut(t notebook.Treatment, k engine.Kind, w *workload.Workload) *notebook.Message {
	if c.Guests > 1 && w.Service != nil && (t.Platform == notebook.BM || t.Network == notebook.NetHost) {
		return notebook.Say("services-share-an-address", "services", c.Guests)
	}
	return nil
}

// ends reports whether the work ends by itself, as a function does. Such work has no steady state.
func ends(w *workload.Workload) bool { return !w.Stays && w.Service == nil }

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{measure.Single{Bench: b, Cell: of}, c}
}

type subject struct {
	measure.Single
	config
}

// Trial implements measure.Subject. It makes guests until the study's number of them live at the same time; the first exists
// already. Each guest does its work, and the trial reads their page tables or counts their page faults. A trial that does not count
// has only the first guest: it reads the tables in the initial state, if the study reads any, and runs a function to its end.
func (s *subject) Trial(ctx context.Context, step measure.Step) (tr notebook.Trial, over bool, err error) {
	p := s.Config
	if !step.Counts() {
		p.Guests, p.SteadyS, p.FaultsS = 1, 0, 0
	}
	tr.Start = time.Now().UTC()
	tr.Command = s.Ready.Workload.Command
	group := &crowd.Group{Host: s.Bench, Treatment: s.Treatment, Ready: s.Ready, Timeout: s.Timeout, First: s.Guest()}
	of := &reading{of: p, eyes: s.eyes, group: group, trial: &tr}
	defer func() {
		err = errors.Join(err, of.stop())
		tr.HostS, tr.Seen = time.Since(tr.Start).Seconds(), of.kept
		err = errors.Join(err, group.Leave(ctx))
	}()
	if ends(s.Ready.Workload) && p.FaultsS > 0 && p.Guests > 1 && s.Treatment.Platform == notebook.CN {
		of.watchMaking(s.Engine)
	}
	for len(group.Guests) < p.Guests {
		if err := of.next(len(group.Guests)); err != nil {
			return tr, true, err
		}
		if g, cause := group.Another(ctx, 0); g == nil {
			tr.Failure = notebook.Say("of-guest-of", "guest", len(group.Guests)+1, "of", p.Guests, "cause", cause)
			return tr, true, nil
		}
	}
	of.made()
	if ends(s.Ready.Workload) && p.FaultsS > 0 {
		if tr.Failure = of.watch(); tr.Failure != nil {
			return tr, true, nil
		}
	}
	if p.Tables {
		of.watchUses()
	}
	cause, err := group.BeginAll(ctx)
	if err != nil || cause != nil {
		tr.Failure = cause
		return tr, true, err
	}
	of.began = time.Now()
	if tr.Failure = of.read(ctx); tr.Failure != nil || ctx.Err() != nil {
		return tr, true, nil
	}
	metric, _ := p.Metrics(ends(s.Ready.Workload))
	tr.Figures = p.Figures(of.kept)
	value, known := tr.Figures[metric.Name]
	if !known && step.Counts() {
		tr.Failure = notebook.Say("nothing-read", "metric", metric.Name)
	}
	tr.Value = value
	return tr, true, nil
}
