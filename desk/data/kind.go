package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"tare/notebook"
)

// Kind is what reading folders needs to know of a kind of study.
type Kind interface {
	// Name is the kind's, as a study has it.
	Name() string
	// Config is how a study of the kind measures; nil where it does not say.
	Config(notebook.Study) (Config, error)
}

// Config is how a study of a kind measures.
type Config interface {
	// Identity distinguishes what it measures from what another config of the kind measures. Rows of one treatment with the same identity are one row.
	Identity() string
	// Traits are what code that knows no kind needs to know about this one.
	Traits() Traits
	// Tally begins a row's tally; nil: the kind's trials record only values and metrics.
	Tally() Tally
}

// Traits are what matters about a kind to code that knows no kind. Timed work has none of them.
type Traits struct {
	NoWork   bool // its trials do no work: no results could depend on synced writes
	Constant bool // its values are sizes and shares: rare stalls do not change them
	NoModel  bool // no cost model by size applies to its values
	Partial  bool // its studies choose which secondary metrics they report: claims skip studies without the metric
	Departs  bool // it departs from the published method: claims leave it out if there are rows that do not

	// Keeps is the objective that a service keeps, where the metric is one over the greatest rate of requests at which it does; nil: it is something
	// else.
	Keeps *Objective

	Alike []notebook.Metric // secondary metrics of a VM that emulation does not change
}

// Objective is what a service is to keep: a time among its load's results, below a bound.
type Objective struct {
	Metric string
	Bound  float64 // seconds
}

// String writes it as a user would: p99<50ms.
func (o Objective) String() string { return o.Metric + "<" + o.Time().String() }

// Time is its bound.
func (o Objective) Time() time.Duration {
	return time.Duration(o.Bound * float64(time.Second)).Round(time.Microsecond)
}

// Tally collects what a row's trials record.
type Tally interface {
	// Trial adds a trial, successful or not.
	Trial(Block, *notebook.Trial) error
	// Finish computes the row's Of, nil where there is none, and the doubts about it.
	Finish(*Summary) (of any, doubts []Doubt)
}

// Traits returns the traits of the row's kind of study.
func (r *Row) Traits() Traits {
	if r.Config == nil {
		return Traits{}
	}
	return r.Config.Traits()
}

// config is how a folder's study measures; nil where it times its work.
func (r *reader) config(f *notebook.Folder) (Config, error) {
	kind := f.Study.Kind
	if kind == "" {
		return nil, nil
	}
	i := slices.IndexFunc(r.opt.Kinds, func(k Kind) bool { return k.Name() == kind })
	if i < 0 {
		return nil, fmt.Errorf("%s: its study is of the kind %q, which this tare does not know: read it with the tare that measured it, or a newer one", f.Dir, kind)
	}
	c, err := r.opt.Kinds[i].Config(f.Study)
	if err != nil {
		return nil, fmt.Errorf("%s%c%w", f.Dir, filepath.Separator, err)
	}
	return c, nil
}
