// Package memory shows studies of the kind "memory": how much of the host's memory guests take.
package memory

import (
	"fmt"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	kind "tare/notebook/kinds/memory"
)

// Kind is memory as the desk knows it.
var Kind = show.Kind{
	Key: kind.Name,
	Read: show.Read(kind.Name, func(c *kind.Config) data.Config {
		if len(c.Guests) == 0 { // the study does not give its numbers of guests
			return nil
		}
		return config{c}
	}),
	Figures: []chart.Drawing{drawWeights, drawAdded, drawAlone},
	Parts:   tables,
	JSON:    "weights",
}

// config is how a study weighed guests.
type config struct{ *kind.Config }

// Identity is the numbers of guests, and how pages are merged: one guest's memory among two guests is not comparable with its
// memory among many.
func (c config) Identity() string {
	id := fmt.Sprintf("%d %q %q", c.Guests, c.KSM, c.HugePages)
	if c.PageCache {
		id += fmt.Sprint(c.PageCache)
	}
	if len(c.Further) > 0 {
		id += fmt.Sprint(c.Further)
	}
	return id
}

func (c config) Traits() data.Traits {
	return data.Traits{NoWork: true, Constant: true, NoModel: true, Partial: true, Departs: c.HugePages != kind.HugePagesOff || !c.PageCache, Alike: kind.OfGuestMemory}
}

func (c config) Tally() data.Tally { return &tally{of: c.Config} }

func (config) Phrases() words.Phrases { return phrases }

// weighed is how a row's guests were weighed; nil: they were not.
func weighed(r *data.Row) *kind.Config {
	if c, is := r.Config.(config); is {
		return c.Config
	}
	return nil
}

// weightsOf is the memory of a row's guests; nil: none was weighed.
func weightsOf(r *data.Row) *Weights {
	w, _ := r.Of.(*Weights)
	return w
}
