// Package paging shows studies of the kind "paging": the page-table entries and the page faults of guests of one image.
package paging

import (
	"fmt"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	kind "tare/notebook/kinds/paging"
)

// Kind is paging as the desk knows it.
var Kind = show.Kind{
	Key:     kind.Name,
	Read:    show.Read(kind.Name, func(c *kind.Config) data.Config { return config{Config: c} }),
	Figures: []chart.Drawing{entries, repeated, rates, copies},
	Parts:   parts,
}

// config is how a study read page tables and faults.
type config struct {
	show.Plain
	*kind.Config
}

// Identity is the whole configuration: what four guests share is not comparable with what two share, or with what they share at
// another time.
func (c config) Identity() string { return fmt.Sprintf("%+v", *c.Config) }

func (config) Traits() data.Traits { return data.Traits{NoWork: true, Constant: true} }

func (config) Tally() data.Tally { return show.Reads[kind.Seen]{} }

func (config) Phrases() words.Phrases { return phrases }
