// Package fit shows studies of the kind "fit": how many guests fit on a host until one of them keeps its objective no more.
package fit

import (
	"slices"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
)

// Kind is what the desk knows of it.
var Kind = show.Kind{Key: kind.Name, Read: show.Read(kind.Name, func(*kind.Config) data.Config { return config{} })}

// config is how a study sought what fits. What it measures is in its metric's name.
type config struct{ show.Plain }

func (config) Tally() data.Tally      { return &searches{} }
func (config) Phrases() words.Phrases { return words.Phrases{Amount: amount} }

// mostFound is how many searches are told of in a row: a folder is not trusted to have few.
const mostFound = 10

// Found is what a search found, and what ran out first; empty: nothing did.
type Found struct {
	Guests  int
	Decided bool // at 95 %
	RanOut  string
	Why     string
}

// Doubt makes it a [data.Doubt]: it stands with the notes on its row.
func (Found) Doubt() {}

// searches are what a row's trials found.
type searches struct{ all []data.Doubt }

func (s *searches) Trial(_ data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	if f := seen.Fitted; f != nil && t.Measured() && t.Failure == "" && len(s.all) < mostFound {
		s.all = append(s.all, Found{f.Guests, f.Decided, data.Shortened(f.RanOut), data.Shortened(f.Why)})
	}
	return err
}

func (s *searches) Finish(*data.Summary) (any, []data.Doubt) { return nil, s.all }

// guests is the row's secondary metric of how many fit; nil where it has none.
func guests(r *data.Row) *data.Secondary {
	if i := slices.IndexFunc(r.Secondary, func(s data.Secondary) bool { return s.Metric == kind.Guests }); i >= 0 {
		return &r.Secondary[i]
	}
	return nil
}
