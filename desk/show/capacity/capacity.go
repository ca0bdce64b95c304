// Package capacity shows studies of the kind "capacity": the greatest rate of requests at which a service meets an objective.
package capacity

import (
	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	kind "tare/notebook/kinds/capacity"
)

// Kind is capacity as the desk knows it.
var Kind = show.Kind{
	Key:     kind.Name,
	Read:    show.Read(kind.Name, func(c *kind.Config) data.Config { return config{of: c} }),
	Figures: []chart.Drawing{figure},
}

// config is how a study searched for capacities. The name of its metric says what it measures.
type config struct {
	show.Plain
	of *kind.Config
}

func (c config) Tally() data.Tally { return &curve{objective: c.of} }

func (c config) Traits() data.Traits {
	t := c.Plain.Traits()
	t.Keeps = &data.Objective{Metric: c.of.Metric, Bound: c.of.Bound}
	return t
}

func (config) Phrases() words.Phrases { return phrases }
