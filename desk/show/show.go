// Package show is the contract between the desk and the kinds of study. Each kind is a package below this one: it reads what the
// kind's trials recorded, holds the sentences, figures and tables that show it, and says what of it is exported. Package kinds
// lists the kinds, and a command passes them in [data.Options]. The rest of the desk knows a kind only by an interface: [data.Kind]
// for reading folders, [words.Speaker] for describing rows, and [Kind] for showing them.
package show

import (
	"tare/desk/chart"
	"tare/desk/data"
	"tare/notebook"
)

// Kind is a kind of study. For a field that is left out, the kind shows nothing of its own.
type Kind struct {
	Key string // its name in a study

	// Read reads the config of a study of the kind; nil: the config is [Plain].
	Read func(notebook.Study) (data.Config, error)

	Figures []chart.Drawing // in the order in which a report shows them, after the figures of any study

	// Short are the secondary metrics that a terminal shows; nil: all of them.
	Short []notebook.Metric

	// JSON is the key of a row's Of in the JSON of a summary; empty: Of is left out.
	JSON string

	// Parts returns what stands below a table of rows. id is the table's anchor in the page.
	Parts func(id, title string, rows []*data.Row, s *data.Summary) []Part
}

// Name is the name of the kind.
func (k *Kind) Name() string { return k.Key }

// Config is how a study of the kind measures.
func (k *Kind) Config(s notebook.Study) (data.Config, error) {
	if k.Read == nil {
		return Plain{}, nil
	}
	return k.Read(s)
}

// Plain is the config of a kind whose trials record only values and metrics, as timed work does. A kind's own config embeds it and
// overrides what differs.
type Plain struct{}

// Identity is the same for all studies.
func (Plain) Identity() string { return "" }

// Traits are those of timed work.
func (Plain) Traits() data.Traits { return data.Traits{} }

// Tally returns nil: trials record nothing that has to be collected.
func (Plain) Tally() data.Tally { return nil }

// Read returns a function that reads the config of a kind and converts it for the desk; the function returns nil if the study has
// no such config.
func Read[T any](kind string, of func(*T) data.Config) func(notebook.Study) (data.Config, error) {
	return func(s notebook.Study) (data.Config, error) {
		c, err := notebook.ConfigOf[T](s, kind)
		if c == nil || err != nil {
			return nil, err
		}
		return of(c), nil
	}
}

// Reads is the tally of a kind whose rows need nothing of what its trials record. It only checks that the record can be read as a
// T.
type Reads[T any] struct{}

// Trial reads the record of a trial.
func (Reads[T]) Trial(_ data.Block, t *notebook.Trial) error {
	_, err := notebook.SeenOf[T](t)
	return err
}

// Finish returns nothing.
func (Reads[T]) Finish(*data.Summary) (any, []data.Doubt) { return nil, nil }

// Kinds are the kinds with which folders were read.
func Kinds(s *data.Summary) (all []*Kind) {
	for _, k := range s.Kinds {
		if k, is := k.(*Kind); is {
			all = append(all, k)
		}
	}
	return all
}

// Of is the kind of a row's study; nil if its work was timed.
func Of(s *data.Summary, r *data.Row) *Kind {
	for _, k := range Kinds(s) {
		if k.Key == r.Kind {
			return k
		}
	}
	return nil
}

// Figures are the drawings of all these kinds, in their order.
func Figures(s *data.Summary) (all []chart.Drawing) {
	for _, k := range Kinds(s) {
		all = append(all, k.Figures...)
	}
	return all
}
