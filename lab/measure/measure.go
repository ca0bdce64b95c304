// Package measure is the contract of a kind of study: what the kind's part of a study file may say, which treatments follow from
// it, and what a trial is. Each kind is a package below this one, and package kinds lists them. A study without a kind times its
// work. That is Plain, on which kinds build.
//
// A study, a session and the notebook know kinds only by this contract.
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
	"tare/yamlfile"
)

// Kind is a kind of study.
type Kind struct {
	Name  string // its key in a study file and in study.json
	Rules Rules

	// Part is the part of a study file under the kind's name; the zero value: a study file cannot name the kind.
	Part Part

	// Seek reads an objective in the form of --until; false: it is not an objective of the kind. nil: the kind has no objectives.
	Seek func(objective string) (Config, bool)
}

// Rules say which options of a study a kind allows. Each text is a reason, for a message that names the kind.
type Rules struct {
	Once     string // why a guest has only one trial, no warm-ups and no neighbours, and is asked from this host; empty: no such limit
	Untraced string // why no tracer may watch; empty: tracers may
	LoadHere string // why --load-from is not allowed; empty: it is

	Turns      bool // a trial is made in parts (Parted), so guests that are alive at the same time can take turns
	Search     bool // one trial consists of many loads or runs, and the study file fixes the number of trials
	Bounded    bool // a trial uses the time that the run lets it have (Bench.Until), but can do with less
	Crowd      bool // a trial has several guests at once, so what the host does outside the first guest means nothing
	Untimed    bool // a trial times no work: its duration is not a cost of the treatment
	Systems    bool // it can measure whole systems, which have no run time
	Stays      bool // it can measure work that never ends
	OwnNetwork bool // guests use the default network of their engine
	BareMetal  bool // bare metal is left out and is not a baseline
}

// Part is a kind's part of a study file.
type Part struct {
	// File is the zero value of the type into which the part is decoded. The schema of study files describes this type and the
	// values that it allows (yamlfile.Limited).
	File any

	// Read reads the part. workloads are the names of the study's workloads. An error may be a *Problem or yamlfile's *PartError.
	Read func(n *yaml.Node, workloads []string) (Config, error)
}

// PartOf returns a part that is decoded strictly into an F. config makes the kind's config from it.
func PartOf[F any](config func(F) (Config, error)) Part {
	var zero F
	return Part{zero, func(n *yaml.Node, _ []string) (Config, error) {
		var f F
		if err := yamlfile.DecodePart(n, &f); err != nil {
			return nil, err
		}
		return config(f)
	}}
}

// Registry is a list of kinds.
type Registry []Kind

// Find returns the kind of a name; nil if it does not exist.
func (r Registry) Find(name string) *Kind {
	for i := range r {
		if r[i].Name == name {
			return &r[i]
		}
	}
	return nil
}

// Names are the names of the kinds that a study file can name and for whose rules what is true; nil: all of them.
func (r Registry) Names(what func(Rules) bool) (names []string) {
	for _, k := range r {
		if k.Part.Read != nil && (what == nil || what(k.Rules)) {
			names = append(names, k.Name)
		}
	}
	return names
}

// Rules are the rules of the kind of a name; the zero value if it does not exist.
func (r Registry) Rules(name string) Rules {
	if k := r.Find(name); k != nil {
		return k.Rules
	}
	return Rules{}
}

// Problem is an error in a kind's part of a study file. Path says where: keys and indexes, relative to that part.
type Problem struct {
	Path []any
	Text string // what is wrong, and what must stand there instead
}

// Wrong is a problem at a key.
func Wrong(key, format string, args ...any) *Problem {
	return &Problem{Path: []any{key}, Text: fmt.Sprintf(format, args...)}
}

// Refused says which value in a kind's part of a study file is not one of those allowed; nil: there is none.
func Refused(file yamlfile.Limited) error {
	key, value, allowed := yamlfile.Refused(file)
	if key == "" {
		return nil
	}
	last := len(allowed) - 1
	list := allowed[last]
	if last > 0 {
		list = strings.Join(allowed[:last], ", ") + " or " + list
	}
	return Wrong(key, "%q: must be %s", value, list)
}

// Error names the keys, and then gives Text.
func (p *Problem) Error() string {
	var at strings.Builder
	for _, step := range p.Path {
		if key, is := step.(string); is {
			at.WriteString(key + ": ")
		}
	}
	return at.String() + p.Text
}

// Config is how a study measures under a kind. Embed [Defaults] for what a kind need not implement.
type Config interface {
	// Record is what study.json holds under the kind's name.
	Record() any

	// Factors are the factors that the kind adds to those of every study.
	Factors() []Factor

	// Fits says what the kind does not allow in a platform of the study file.
	Fits(platform string, networks, isolation []string) error

	// Accepts says why the kind cannot measure a workload.
	Accepts(w *workload.Workload) error

	// Design is the study's design after the kind has filled in or changed what it decides.
	Design(d notebook.Design) notebook.Design

	// Metrics returns the main metric of a workload's trials and the secondary metrics. drawn are the metrics that the study's
	// figures name.
	Metrics(w *workload.Workload, drawn []string) (first notebook.Metric, also []notebook.Metric)

	// Possible says why this host cannot measure the kind at all.
	Possible() error

	// LeavesOut says why a treatment is not measured; nil: it is measured.
	LeavesOut(t notebook.Treatment, k engine.Kind, w *workload.Workload) *notebook.Message

	// Neighbours are the kinds of neighbours, of notebook.Busy, that the kind itself adds to a guest.
	Neighbours() []string

	// Identity is what of the configuration decides the meaning of a trial. It is part of the study's hash, and a folder is
	// continued only with the same identity.
	Identity(all []*workload.Ready) []any

	// Set changes the host for the time of a run. notes say what was changed; undo, unless nil, changes it back.
	Set(j *journal.Journal) (notes []*notebook.Message, undo func(context.Context) error, err error)

	// Subject returns one guest to be measured.
	Subject(b Bench, c Cell) Subject
}

// Factor is a factor with the values that a study asks for.
type Factor struct {
	Of     notebook.Factor
	Values []string // each value makes a treatment; none: treatments do not have the factor
}

// Lab is the host as kinds see it.
type Lab interface {
	crowd.Host
	// Create makes a guest without starting it.
	Create(ctx context.Context, w crowd.Want) (Ahead, error)
	// Reads lists the files and folders that the start of the treatment's guest reads.
	Reads(ctx context.Context, t notebook.Treatment, w *workload.Ready) ([]string, error)
	// Journal is the undo journal, in which every change to the host is written before it is made.
	Journal() *journal.Journal
}

// Ahead is a guest that was made and not yet started. engine.Ahead documents each method.
type Ahead interface {
	Start(ctx context.Context) error
	Meet(ctx context.Context) (crowd.Guest, error)
	InForce() error
	Destroy(ctx context.Context) error
}

// Bench is what a kind needs for its trials.
type Bench struct {
	Lab
	Timeout time.Duration // of a trial, and of a command of its load
	Tracers []string      // that watch traced trials

	// Neighbour is the work of a neighbour that is busy in one of notebook.Busy's ways.
	Neighbour func(t notebook.Treatment, busy string) *workload.Ready

	// Until is when a search must end, having used its share of the run's time.
	Until func(usual time.Duration) time.Time

	// Note adds a text to the summary at the end of the session.
	Note func(*notebook.Message)
}

// Cell says which guest is to be measured.
type Cell struct {
	Treatment notebook.Treatment
	Engine    engine.Kind
	Ready     *workload.Ready
	ID        string
	Rehearsal bool // it is tried before the study begins, and nothing is recorded
}

// Subject is a guest and its trials.
type Subject interface {
	// Make makes the guest, in bounded time. After an error nothing of it remains.
	Make(ctx context.Context) error
	// Guest is the guest that Make made. The caller of Make removes it.
	Guest() crowd.Guest
	// Service is the workload's service in the guest, once it has begun; nil: the workload has none, or none that lives from trial
	// to trial. The caller of SetUp or Make takes it down before the guest is removed.
	Service() *crowd.Service
	// SetUp makes the guest ready for its trials; cause says why that failed.
	SetUp(ctx context.Context) (cause *notebook.Message, err error)
	// Trial makes one trial. over: the guest can no longer be used. An error ends the study: something is left that would disturb
	// the next measurement. If ctx ends first, the result is meaningless.
	Trial(ctx context.Context, s Step) (tr notebook.Trial, over bool, err error)
}

// Parted is a Subject that makes a trial in parts of some seconds. Between two parts, other guests have their turns.
type Parted interface {
	Subject
	// Part makes the next part of a trial. more: further parts follow, and tr says only how long the parts took so far. Otherwise the
	// results are Trial's.
	Part(ctx context.Context, s Step) (tr notebook.Trial, more, over bool, err error)
}

// Role is the purpose of a trial.
type Role int

// The roles of a trial.
const (
	Measured  Role = iota
	Traced         // it feeds no ratio
	Warmup         // its result is not used, so it is as short as possible
	Rehearsal      // a warm-up before the study begins
)

// Step is one trial for a guest to do.
type Step struct {
	Role  Role
	Index int // among the trials of its role
}

// Counts reports whether the trial's result is used.
func (s Step) Counts() bool { return s.Role == Measured || s.Role == Traced }

// Defaults implements the methods of Config that a kind need not implement itself.
type Defaults struct{}

// Factors implements Config: no further factors.
func (Defaults) Factors() []Factor { return nil }

// Fits implements Config: every platform is allowed.
func (Defaults) Fits(string, []string, []string) error { return nil }

// Accepts implements Config: every workload is accepted.
func (Defaults) Accepts(*workload.Workload) error { return nil }

// Design implements Config: the study's own design.
func (Defaults) Design(d notebook.Design) notebook.Design { return d }

// Possible implements Config: every host can measure it.
func (Defaults) Possible() error { return nil }

// LeavesOut implements Config: every treatment is measured.
func (Defaults) LeavesOut(notebook.Treatment, engine.Kind, *workload.Workload) *notebook.Message {
	return nil
}

// Neighbours implements Config: none are added.
func (Defaults) Neighbours() []string { return nil }

// Set implements Config: the host is not changed.
func (Defaults) Set(*journal.Journal) ([]*notebook.Message, func(context.Context) error, error) {
	return nil, nil, nil
}
