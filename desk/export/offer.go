package export

import (
	"cmp"
	"math"

	"tare/desk/advise"
	"tare/desk/words"
	"tare/stats"
)

// offers are what the choices of a ranking cost. What is not known is null.
type offers struct {
	Objective string       `json:"objective"`
	Demand    stats.Number `json:"demand"` // requests a second; null: none
	Currency  string       `json:"currency"`
	List      []offer      `json:"list"` // cheapest first
	Notes     []string     `json:"notes"`
}

type offer struct {
	Name       string       `json:"name"`
	Predicted  bool         `json:"predicted"`
	Rate       stats.Number `json:"requests_per_second_each"`
	Instances  *int         `json:"instances"` // null: there is no demand
	Hourly     stats.Number `json:"instance_hour"`
	Total      stats.Number `json:"hour"`
	PerMillion stats.Number `json:"million_requests"`
	Keeps      stats.Number `json:"probability"`
}

func offersOf(r *advise.Ranking) *offers {
	o := r.Offers
	out := &offers{
		Objective: o.Objective.String(), Demand: stats.Number(cmp.Or(o.Demand, math.NaN())), Currency: o.Currency, List: []offer{}, Notes: list(words.Doubts(o.Doubts)),
	}
	for _, f := range o.List {
		c := r.Choices[f.Choice]
		var n *int
		if f.Instances > 0 {
			n = &f.Instances
		}
		out.List = append(out.List, offer{
			words.Choice(c.Treatment, r.Networks), c.Predicted, stats.Number(f.Rate), n, stats.Number(f.Hourly), stats.Number(f.Total), stats.Number(f.PerMillion), stats.Number(f.Keeps),
		})
	}
	return out
}
