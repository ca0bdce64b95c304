// Package idlecost shows studies of the kind "idle-cost": what guests cost that run and do nothing.
package idlecost

import (
	"fmt"
	"slices"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/stats"
)

const name = "idle-cost"

// Kind is idle-cost as the desk knows it.
var Kind = show.Kind{
	Key:     name,
	Read:    show.Read(name, func(c *config) data.Config { return *c }),
	Figures: []chart.Drawing{figure},
}

// Metrics of what an idle guest uses, as in a study.
const (
	cpuTime = "idle_guest_cpu"
	wakeUps = "idle_guest_wake_ups"
)

// metric is the slowdown next to a number of idle guests, as in a study.
func metric(guests int) string { return fmt.Sprintf("slowdown(%d)", guests) }

// config is how a study measured the cost of idle guests, as in study.json.
type config struct {
	show.Plain
	Guests []int `json:"guests"` // numbers of idle guests at the same time
	Runs   int   `json:"runs"`   // of the work at each number
}

func (c config) Identity() string { return fmt.Sprint(c.Guests, c.Runs) }

// slowed are a row's slowdowns, by rising number of idle guests; none for a row of another kind.
func slowed(r *data.Row) (all []chart.Point) {
	c, is := r.Config.(config)
	if !is || r.IsFigure {
		return nil
	}
	for _, n := range slices.Sorted(slices.Values(c.Guests)) {
		if e := r.Known(metric(n)); stats.Finite(e.Value) {
			all = append(all, chart.Point{X: float64(n), Y: e})
		}
	}
	return all
}

// figure draws the slowdown of a working guest over the number of idle guests that share its CPUs.
func figure(p *chart.Panel, stem string) *chart.Figure {
	plot := &chart.Plot{Axis: axis, Left: 44, Tall: 200, Across: 1, Nothing: nothing}
	for i, r := range p.Rows {
		points := slowed(r)
		if len(points) == 0 || r.Treatment.AA {
			continue
		}
		m := p.Mark(i)
		m.Words = said(r, points)
		plot.Lines = append(plot.Lines, chart.Line{Of: len(plot.Legend), Width: 1.4, Symbols: true, Points: points})
		plot.Legend = append(plot.Legend, m)
	}
	if len(plot.Legend) == 0 {
		return nil
	}
	return &chart.Figure{File: stem + "-idle", Title: p.Beside(title), How: how, Alt: chart.InWords(lead, plot.Legend), Picture: plot.Draw()}
}
