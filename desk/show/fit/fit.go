// Package fit shows studies of the kind "fit": how many guests fit on a host before one of them no longer keeps its objective.
package fit

import (
	"slices"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
	"tare/stats"
)

// Kind is fit as the desk knows it.
var Kind = show.Kind{Key: kind.Name, Read: show.Read(kind.Name, func(c *kind.Config) data.Config { return config{of: c} })}

// config is how a study searched for the number of guests that fit. The name of its metric says what it measures.
type config struct {
	show.Plain
	of *kind.Config
}

func (config) Tally() data.Tally { return &searches{} }
func (c config) Phrases() words.Phrases {
	return words.Phrases{Run: "search", Open: func(r *data.Row) bool { f, is := r.Of.(*fits); return is && f.open() }, Amount: amount, Finding: c.finding}
}

// mostFound is the number of searches that a row reports, because a folder is not trusted to have few.
const mostFound = 10

// Found is the result of a search, with the resource that ran out first; empty: none did.
type Found struct {
	Guests  int
	Decided bool // at 95 %
	RanOut  string
	Why     *notebook.Message
}

// Doubt makes Found a [data.Doubt], so that it appears with the notes on its row.
func (Found) Doubt() {}

// fits are the results of a row's searches together.
type fits struct {
	least, most int          // guests
	decided     bool         // by every search
	ranOut      []string     // resources that ran out first, each once
	tails       map[int]span // by guests: between which the metric lies in the searches, as a multiple of its value without neighbours
	left        int64        // bytes of memory that the host had left next to one guest; 0: not recorded
}

// span is from the least to the greatest of some numbers.
type span struct{ least, most float64 }

// open reports whether more time may decide how many fit: a search ended within a limit, and the runs do not decide it.
func (f *fits) open() bool { return !f.decided && f.ranOut != nil }

// add adds the result of a search.
func (f *fits) add(of *kind.Fitted) {
	if f.most == 0 {
		f.least, f.decided = of.Guests, true
	}
	f.least, f.most, f.decided = min(f.least, of.Guests), max(f.most, of.Guests), f.decided && of.Decided
	if what := data.Shortened(of.RanOut); what != "" && !slices.Contains(f.ranOut, what) {
		f.ranOut = append(f.ranOut, what)
	}
	for _, s := range of.Steps {
		if !stats.Finite(s.Ratio) || s.Ratio <= 0 {
			continue
		}
		if f.tails == nil {
			f.tails = map[int]span{}
		}
		was, had := f.tails[s.Guests]
		if !had {
			was = span{s.Ratio, s.Ratio}
		}
		f.tails[s.Guests] = span{min(was.least, s.Ratio), max(was.most, s.Ratio)}
	}
	if i := slices.IndexFunc(of.Steps, func(s kind.Step) bool { return s.Guests == 1 }); i >= 0 && (f.left == 0 || of.Steps[i].Available < f.left) {
		f.left = of.Steps[i].Available
	}
}

// searches are the results of a row's trials.
type searches struct {
	all  []data.Doubt
	fits fits
}

func (s *searches) Trial(_ data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	if f := seen.Fitted; f != nil && t.Measured() && t.Failure == nil && len(s.all) < mostFound {
		s.fits.add(f)
		s.all = append(s.all, Found{f.Guests, f.Decided, data.Shortened(f.RanOut), data.Bounded(f.Why)})
	}
	return err
}

func (s *searches) Finish(*data.Summary) (any, []data.Doubt) {
	if s.fits.most == 0 {
		return nil, s.all
	}
	return &s.fits, s.all
}

// guests is the row's secondary metric of the number of guests that fit; nil if the row has none.
func guests(r *data.Row) *data.Secondary {
	if i := slices.IndexFunc(r.Secondary, func(s data.Secondary) bool { return s.Metric == kind.Guests }); i >= 0 {
		return &r.Secondary[i]
	}
	return nil
}
