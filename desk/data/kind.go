package data

import (
	"fmt"
	"path/filepath"
	"slices"

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
	// Identity tells what it measures from what another config of the kind does: rows of one treatment are one row only where it is the same.
	Identity() string
	// Traits are what those need to know of it who know no kind.
	Traits() Traits
	// Tally begins a row's; nil: the kind's trials record only values and metrics.
	Tally() Tally
}

// Traits are what matters of a kind to those who know none. Timed work has none of them.
type Traits struct {
	NoWork   bool // its trials do no work whose results could rest on synced writes
	Constant bool // its values are sizes and shares, which no rare stall changes
	NoModel  bool // what a platform costs by size is no model of them
	Partial  bool // its studies choose which secondary metrics they report: of those without one, claims say nothing
	Departs  bool // it is measured otherwise than as it was published: claims leave it out where other rows are not

	Alike []notebook.Metric // secondary metrics of a VM that are the same whether it is emulated or not
}

// Tally is what a row's trials record, in the making.
type Tally interface {
	// Trial takes a trial, whatever came of it.
	Trial(Block, *notebook.Trial) error
	// Finish works out the row's Of, nil where there is none, and what is to be said of it with the row.
	Finish(*Summary) (of any, doubts []Doubt)
}

// Traits are those of the row's kind of study.
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
