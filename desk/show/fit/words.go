package fit

import (
	_ "embed"
	"fmt"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"host_share(%s,%s)": "share of the host that a guest needs (%s below %s times its value alone)",
	"guests_fit":        "guests that fit",
})

// Say is the sentence for the result of a search.
func (f Found) Say() string {
	said := fmt.Sprint(f.Guests, " guests fit")
	if f.Guests == 1 {
		said = "1 guest fits"
	}
	if f.Decided {
		said += ", sure at 95 %"
	} else {
		said += ", which the runs do not decide"
	}
	if f.RanOut == "" {
		return said + "; more were not tried"
	}
	return said + "; what runs out first is " + words.Plain(f.RanOut) + ": " + words.Plain(words.Message(f.Why))
}

// amount is the number of guests that fit, ahead of the metric's mean.
func amount(r *data.Row, mean string) string {
	g := guests(r)
	if g == nil {
		return mean
	}
	return words.Caption(g.Metric.Name) + ": " + words.Measured(g.Mean, g.Low, g.High, g.Metric.Unit) + "; " + mean
}
