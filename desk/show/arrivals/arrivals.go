// Package arrivals shows studies of the kind "arrivals": how fast containers start when their starts are requested at a rate, and
// what their engine does at that time.
package arrivals

import (
	"fmt"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	kind "tare/notebook/kinds/arrivals"
)

// Kind is arrivals as the desk knows it.
var Kind = show.Kind{
	Key:     kind.Name,
	Read:    show.Read(kind.Name, func(c *kind.Config) data.Config { return config{c} }),
	Figures: []chart.Drawing{bringups, works, flames},
	Short:   kind.InShort,
}

// config is how a study started containers under load.
type config struct{ *kind.Config }

// Identity is the number of requests: the results of ten requests and of a hundred are not comparable.
func (c config) Identity() string { return fmt.Sprint(c.ForS, c.Least, c.Most) }

func (config) Traits() data.Traits { return data.Traits{NoWork: true} }

func (config) Tally() data.Tally { return &profile{} }

// published is what the study of a row cites from a paper.
func published(r *data.Row) []kind.Published {
	if c, is := r.Config.(config); is {
		return c.Published
	}
	return nil
}
