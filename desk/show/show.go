// Package show is the contract between the desk and the kinds of study. What a kind's trials recorded, the sentences, figures and tables
// that it takes to show that, and what of it is exported are a package below this one; package kinds lists them, and a command hands
// them in with [data.Options]. The rest of the desk knows a kind by what it is to it alone: [data.Kind] where folders are read,
// [words.Speaker] where rows are spoken of, and [Kind] where they are shown.
package show

import (
	"tare/desk/chart"
	"tare/desk/data"
	"tare/notebook"
)

// Kind is a kind of study. Of what it leaves out it shows nothing of its own.
type Kind struct {
	Key string // its name in a study

	// Read reads the config of a study of the kind; nil: it is a [Plain] one.
	Read func(notebook.Study) (data.Config, error)

	Figures []chart.Drawing // in the order in which they stand in a report, after those of any study

	// Short are the secondary metrics that a terminal has room for; nil: all of them.
	Short []notebook.Metric

	// JSON is the key of the rows' Of in the JSON of a summary; empty: it is not there.
	JSON string

	// Parts are what stands below a table of rows, whose anchor in the page and title these are.
	Parts func(id, title string, rows []*data.Row, s *data.Summary) []Part
}

// Name is the kind's.
func (k *Kind) Name() string { return k.Key }

// Config is how a study of the kind measures.
func (k *Kind) Config(s notebook.Study) (data.Config, error) {
	if k.Read == nil {
		return Plain{}, nil
	}
	return k.Read(s)
}

// Plain is the config of a kind whose trials record only values and metrics, as timed work does. What a kind's own config has otherwise it
// says itself.
type Plain struct{}

// Identity is the same for all.
func (Plain) Identity() string { return "" }

// Traits are those of timed work.
func (Plain) Traits() data.Traits { return data.Traits{} }

// Tally takes nothing.
func (Plain) Tally() data.Tally { return nil }

// Read reads the config of a kind, and makes of it what the desk has; nil where the study does not say.
func Read[T any](kind string, of func(*T) data.Config) func(notebook.Study) (data.Config, error) {
	return func(s notebook.Study) (data.Config, error) {
		c, err := notebook.ConfigOf[T](s, kind)
		if c == nil || err != nil {
			return nil, err
		}
		return of(c), nil
	}
}

// Reads is the tally of a kind whose rows take nothing from what its trials record as a T: it sees to it that this can be read.
type Reads[T any] struct{}

// Trial reads what a trial recorded.
func (Reads[T]) Trial(_ data.Block, t *notebook.Trial) error {
	_, err := notebook.SeenOf[T](t)
	return err
}

// Finish has nothing.
func (Reads[T]) Finish(*data.Summary) (any, []data.Doubt) { return nil, nil }

// Kinds are those with which folders were read.
func Kinds(s *data.Summary) (all []*Kind) {
	for _, k := range s.Kinds {
		if k, is := k.(*Kind); is {
			all = append(all, k)
		}
	}
	return all
}

// Of is the kind of a row's study; nil where its work was timed.
func Of(s *data.Summary, r *data.Row) *Kind {
	for _, k := range Kinds(s) {
		if k.Key == r.Kind {
			return k
		}
	}
	return nil
}

// Figures are the drawings of these kinds, in their order.
func Figures(s *data.Summary) (all []chart.Drawing) {
	for _, k := range Kinds(s) {
		all = append(all, k.Figures...)
	}
	return all
}
