// Package starting shows studies of the kind "starting": how long a guest takes from the request to its first useful answer, and to
// be saved and restored.
package starting

import (
	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	kind "tare/notebook/kinds/starting"
)

// Kind is starting as the desk knows it.
var Kind = show.Kind{
	Key:     kind.Name,
	Read:    show.Read(kind.Name, func(c *kind.Config) data.Config { return config{Config: c} }),
	Figures: []chart.Drawing{timeline, emulatedTimeline},
	Parts:   parts,
}

// config is how a study timed starts.
type config struct {
	show.Plain
	*kind.Config
}

func (config) Traits() data.Traits { return data.Traits{NoWork: true} }
func (config) Tally() data.Tally   { return &Saving{} }
