package starting

import (
	_ "embed"
	"html/template"
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"sandbox_ready":        "sandbox ready",
	"image_ready":          "image ready",
	"guest_created":        "guest created",
	"first_process":        "first process runs",
	"engine_returned":      "engine returned",
	"ruler_hello":          "ruler says hello",
	"work_ordered":         "work ordered",
	"login_prompt":         "login prompt",
	"first_answer":         "first useful answer",
	"answer_after_restore": "answer after restore",
	"state_size":           "size of the saved state",
	"start_up_time":        "start-up time",
	"start_as_published":   "start as in the paper’s table",
	"restored":             "restored",
	"restored_or_started":  "VM restored, or container started",
	"saved":                "saved",
})

// said says how a row's guests were saved, and why others were not.
func said(r *data.Row) (all []string) {
	saving, is := r.Of.(*Saving)
	if !is {
		return nil
	}
	what := words.Platform(r.Treatment.Platform)
	if r.Treatment.Platform == notebook.CN { // each engine has its own way
		what += " of " + words.Plain(r.Treatment.Engine)
	}
	for _, n := range saving.How {
		all = append(all, what+" restored: "+words.Message(n))
	}
	for _, n := range saving.Not {
		all = append(all, "not restored: "+words.Message(n))
	}
	for _, n := range saving.WentOn {
		all = append(all, "proof that it went on: "+words.Message(n))
	}
	return all
}

// Texts of the table.
var (
	heads = []show.Head{
		{Text: "Guests"}, {Text: "Moment"}, {Text: "Starts"}, {Text: "Median", Small: ofInterval, Span: 2}, {Text: "Mean", Small: ofInterval, Span: 2},
		{Text: "p95", Small: ofInterval, Span: 2}, {Text: "p99", Small: ofInterval, Span: 2},
	}
	under template.HTML = "All moments are when the host saw them, by its own clock. A median’s and a percentile’s interval is two of the ordered starts; it has no upper end where there are too few. "
)

const (
	caption                  = "Moments of a start and of a restore, in seconds since the request: "
	published                = "published: "
	ofInterval template.HTML = "95&nbsp;%"
)

// Texts of the figure.
const (
	how = "From the top down, for each guest: the mean time from one moment to the next, and its share of the whole; each bar begins where the one above it ends. Pale: " +
		"what the ruler and the reading back of limits take, which a start without Tare has not."
	emulated = "Hatched: emulated, which says nothing of a VM’s cost."
)

func title(representative bool) string {
	if representative {
		return "From the request to each moment of a start"
	}
	return "From the request to each moment of a start, emulated"
}

func alt(guests []string) string {
	return "Bars one after the other. " + strings.Join(guests, "; ") + "."
}

func axis(unit string) string { return "time since the request, " + unit }
