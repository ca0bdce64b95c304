// Package paging shows studies of the kind "paging": what guests of one image have in their page tables, and which page faults they take.
package paging

import (
	"fmt"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	kind "tare/notebook/kinds/paging"
)

// Kind is what the desk knows of it.
var Kind = show.Kind{
	Key:     kind.Name,
	Read:    show.Read(kind.Name, func(c *kind.Config) data.Config { return config{Config: c} }),
	Figures: []chart.Drawing{entries, repeated},
	Parts:   parts,
}

// config is how a study read page tables and faults.
type config struct {
	show.Plain
	*kind.Config
}

// Identity is all of it: what four guests share is another figure than what two do, or after another time.
func (c config) Identity() string { return fmt.Sprintf("%+v", *c.Config) }

func (config) Traits() data.Traits { return data.Traits{NoWork: true, Constant: true} }

func (config) Tally() data.Tally { return show.Reads[kind.Seen]{} }

func (config) Phrases() words.Phrases { return phrases }
