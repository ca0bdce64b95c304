// Package measure is the contract of a kind of study: what its part of a study's file says, which treatments that makes, and what a
// trial of it is. Below it each kind is one package, and package session has their list. What has no kind times its work: that is
// Plain, which kinds build upon.
//
// A study, a session and the notebook know kinds by this contract alone.
package measure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/workload"
	"tare/notebook"
)

// Kind is a kind of study.
type Kind struct {
	Name  string // its key in a study's file, and in study.json
	Rules Rules

	// Read reads what a study's file has under the name; nil: nothing can stand there. workloads are the names of those that the study uses. An
	// error may be a *Problem, or yamlfile's *PartError.
	Read func(n *yaml.Node, workloads []string) (Config, error)

	// Seek reads an objective, as --until has it; false: it is none of the kind's. nil: the kind has none.
	Seek func(objective string) (Config, bool)
}

// Rules say which studies go with a kind. The texts are reasons, for a message that names the kind.
type Rules struct {
	Once     string // why a guest has one trial, without warm-ups, without neighbours and asked from this host; empty: it may have more
	Untraced string // why no tracer looks on; empty: one may
	LoadHere string // why --load-from does not go with it; empty: it does

	Search     bool // a trial is many loads or runs, and so many trials as the study says
	Crowd      bool // a trial has several guests at once, so that what the host does beside the first says nothing
	Untimed    bool // a trial times no work: how long it takes is no one's cost
	Systems    bool // whole systems are measured, which have no run time
	Stays      bool // work that never ends is measured
	OwnNetwork bool // guests have the network that their engine gives by itself
	BareMetal  bool // bare metal is no baseline of it, and left out
}

// Registry has kinds.
type Registry []Kind

// Find is the kind of a name; nil: there is none.
func (r Registry) Find(name string) *Kind {
	for i := range r {
		if r[i].Name == name {
			return &r[i]
		}
	}
	return nil
}

// Names are those of the kinds that a study's file can name and of which what holds; nil: any.
func (r Registry) Names(what func(Rules) bool) (names []string) {
	for _, k := range r {
		if k.Read != nil && (what == nil || what(k.Rules)) {
			names = append(names, k.Name)
		}
	}
	return names
}

// Rules are those of the kind of a name; none where it has none.
func (r Registry) Rules(name string) Rules {
	if k := r.Find(name); k != nil {
		return k.Rules
	}
	return Rules{}
}

// Problem is what is wrong in a kind's part of a study's file, and where: keys and indexes from the kind's own.
type Problem struct {
	Path []any
	Text string // what was expected
}

// Wrong is a problem at a key.
func Wrong(key, format string, args ...any) *Problem {
	return &Problem{Path: []any{key}, Text: fmt.Sprintf(format, args...)}
}

// Error names the keys, and what was expected.
func (p *Problem) Error() string {
	var at strings.Builder
	for _, step := range p.Path {
		if key, is := step.(string); is {
			at.WriteString(key + ": ")
		}
	}
	return at.String() + p.Text
}

// Config is how a study measures in the way of a kind. [Defaults] has all of it that a kind need not say.
type Config interface {
	// Record is what stands in study.json, under the kind's name.
	Record() any

	// Factors are what makes treatments beside what every study has, each with its values.
	Factors() []Factor

	// Fits says what of a platform, as a study's file has it, does not go with it.
	Fits(platform string, networks, isolation []string) error

	// Accepts says what of a workload does not go with it.
	Accepts(w *workload.Workload) error

	// Design is the study's design, as far as the kind leaves it open.
	Design(d notebook.Design) notebook.Design

	// Metrics are the metric of a workload's trials, and the secondary ones. drawn are those that a figure of the study names.
	Metrics(w *workload.Workload, drawn []string) (first notebook.Metric, also []notebook.Metric)

	// Possible says why this host cannot measure so at all.
	Possible() error

	// LeavesOut says why a treatment is not measured; empty: it is.
	LeavesOut(t notebook.Treatment, k engine.Kind, w *workload.Workload) string

	// Neighbours is what a guest's neighbours are that the kind itself adds: of notebook.Busy.
	Neighbours() []string

	// Identity is what of it decides what trials mean: a folder goes on only with the same. It becomes a part of the study's hash.
	Identity(all []*workload.Ready) []any

	// Set sets the host for the time of a run. notes say what was set; undo, where it is not nil, puts it back.
	Set(j *journal.Journal) (notes []string, undo func(context.Context) error, err error)

	// Subject is one guest that is to be measured.
	Subject(b Bench, c Cell) Subject
}

// Factor is what distinguishes treatments, by its name in Treatment.Params.
type Factor struct {
	Name   string
	Values []string // each makes a treatment; none: it makes none
}

// Lab is the host as kinds have it.
type Lab interface {
	crowd.Host
	// Create makes a guest without starting it.
	Create(ctx context.Context, w crowd.Want) (Ahead, error)
	// Reads lists the files and folders that a start of the treatment's guest reads.
	Reads(ctx context.Context, t notebook.Treatment, w *workload.Ready) ([]string, error)
	// Journal is where changes to the host are written down before they are made.
	Journal() *journal.Journal
}

// Ahead is a guest that is made and not started; engine.Ahead says more about each.
type Ahead interface {
	Start(ctx context.Context) error
	Meet(ctx context.Context) (crowd.Guest, error)
	InForce() error
	Destroy(ctx context.Context) error
}

// Bench is what a trial is made with.
type Bench struct {
	Lab
	Timeout time.Duration // of a trial, and of a command of its load
	Tracers []string      // of traced trials

	// Neighbour is the work of a neighbour that is busy in one of notebook.Busy's ways.
	Neighbour func(t notebook.Treatment, busy string) *workload.Ready

	// Until is when a search has had its part of the run's time.
	Until func(usual time.Duration) time.Time

	// Note adds to what the end of the session says.
	Note func(text string)
}

// Cell is which guest is to be measured.
type Cell struct {
	Treatment notebook.Treatment
	Engine    engine.Kind
	Ready     *workload.Ready
	ID        string
	Rehearsal bool // the study has not begun, and nothing is recorded
}

// Subject is a guest with its trials.
type Subject interface {
	// Make makes the guest, in bounded time. On error nothing of it remains.
	Make(ctx context.Context) error
	// Guest is what Make made; whoever called it removes it.
	Guest() crowd.Guest
	// Service is the workload's in the guest, once it was begun; nil: it has none, or none that is there from trial to trial. Whoever called SetUp,
	// or Make, takes it down before the guest is removed.
	Service() *crowd.Service
	// SetUp has the guest ready for its trials; cause says why it is not.
	SetUp(ctx context.Context) (cause string, err error)
	// Trial makes one trial. over: the guest is of no use any more. The error ends the study: something is left that would disturb whatever is
	// measured next. Where ctx ends, what it gives is of no use.
	Trial(ctx context.Context, s Step) (tr notebook.Trial, over bool, err error)
}

// Role is what a trial is for.
type Role int

// Roles.
const (
	Measured  Role = iota
	Traced         // it feeds no ratio
	Warmup         // nothing is made of it, so that it is as short as it can be
	Rehearsal      // the same, before the study begins
)

// Step is one trial that a guest is to do.
type Step struct {
	Role  Role
	Index int // among those of its role
}

// Counts says whether something is made of its result.
func (s Step) Counts() bool { return s.Role == Measured || s.Role == Traced }

// Defaults are what a kind need not say.
type Defaults struct{}

// Factors implements Config: there are none.
func (Defaults) Factors() []Factor { return nil }

// Fits implements Config: any platform does.
func (Defaults) Fits(string, []string, []string) error { return nil }

// Accepts implements Config: any workload does.
func (Defaults) Accepts(*workload.Workload) error { return nil }

// Design implements Config: it is the study's.
func (Defaults) Design(d notebook.Design) notebook.Design { return d }

// Possible implements Config: it is.
func (Defaults) Possible() error { return nil }

// LeavesOut implements Config: nothing is left out.
func (Defaults) LeavesOut(notebook.Treatment, engine.Kind, *workload.Workload) string { return "" }

// Neighbours implements Config: none are added.
func (Defaults) Neighbours() []string { return nil }

// Set implements Config: nothing is set.
func (Defaults) Set(*journal.Journal) ([]string, func(context.Context) error, error) {
	return nil, nil, nil
}
