package arrivals

import (
	_ "embed"
	"fmt"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/arrivals"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"start_mean":                   "start time",
	"start_p50":                    "start time, median",
	"start_p95":                    "start time, p95",
	"start_p99":                    "start time, p99",
	"start_max":                    "start time, longest",
	"first_process_mean":           "time to first process",
	"first_answer_mean":            "time to first answer",
	"first_answer_p50":             "time to first answer, median",
	"first_answer_p95":             "time to first answer, p95",
	"first_answer_p99":             "time to first answer, p99",
	"first_answer_max":             "time to first answer, longest",
	"rate_reached":                 "achieved rate",
	"client_late_p99":              "client's timer error, p99",
	"client_cpu":                   "client's CPU time",
	"profile_engine_kernel":        "engine's samples in the kernel",
	"profile_engine_go_memory":     "engine's samples in Go's garbage collection and allocation",
	"profile_engine_kernel_memory": "engine's samples in the kernel's memory management, process creation and end",
	"profile_engine":               "samples that are the engine's",
	"profile_all_kernel":           "engine's and containers' samples in the kernel",
	"profile_all_go_memory":        "engine's and containers' samples in Go's garbage collection and allocation",
	"profile_all_kernel_memory":    "engine's and containers' samples in the kernel's memory management, process creation and end",
})

// Texts of the bring-up.
const (
	bringupTitle = "Start time over the rate of requests"
	bringupAxis  = "seconds, over requests to start a second"
	bringupHow   = "Solid: the mean time from the moment for which a request was meant to the end of the engine’s call, with its 95 % interval over rounds; dashed, the 95th " +
		"percentile; dotted, from the same moment to the application’s first answer. The thin line at the foot is how late the client made one request in a hundred: as long as it is far " +
		"below, the client is not what was measured. Crosses are the paper’s mean and 95th percentile. Both axes are logarithmic. An engine is beyond its knee at the first rate that " +
		"meets one of two conditions: it completes fewer than 90 % of the requests while they arrive, or its 95th percentile is more than twice that of the lowest rate."
)

// knees says where the knees are.
func knees(all [][]*data.Row, marks []chart.Mark) string {
	var said []string
	for i, rows := range all {
		said = append(said, marks[i].Names[0]+" "+knee(rows))
	}
	return "The knee: " + strings.Join(said, "; ") + "."
}

func knee(rows []*data.Row) string {
	i, why := kneeOf(rows, started)
	if why == noKnee {
		return fmt.Sprintf("none up to %s a second", words.Digits(started(rows[len(rows)-1]), 3))
	}
	at := words.Digits(started(rows[i]), 3)
	said := fmt.Sprintf("beyond it at %s a second", at)
	if i > 0 {
		said = fmt.Sprintf("between %s and %s a second", words.Digits(started(rows[i-1]), 3), at)
	}
	if why == atRate {
		return said + fmt.Sprintf(" (%s a second completed)", words.Digits(rows[i].Known(kind.RateReached.Name).Value, 3))
	}
	return said + " (its 95th percentile has more than doubled)"
}

// bringupAlt is the figure in words.
func bringupAlt(all [][]*data.Row, marks []chart.Mark) string {
	var said []string
	for i, rows := range all {
		for _, r := range rows {
			of := func(name string, factor float64, digits int) string {
				return words.Digits(factor*r.Known(name).Value, digits)
			}
			said = append(said, fmt.Sprintf("%s, %s a second: mean %s s, 95th percentile %s s, first answer %s s, %s a second completed, client %s ms late and at %s %% of a core",
				marks[i].Names[0], words.Digits(started(r), 3), words.Digits(r.Mean, 3), of(kind.StartP95.Name, 1, 3), of(kind.AnswerMean.Name, 1, 3),
				of(kind.RateReached.Name, 1, 3), of(kind.ClientLate.Name, 1e3, 2), of(kind.ClientCPU.Name, 1, 2)))
		}
	}
	return "Lines over the rate. " + strings.Join(said, "; ") + "."
}

// Texts of the samples.
const (
	flamesTitle = "Where the engine’s time goes, by function"
	worksTitle  = "What the engine is at while containers are started"
	worksAxis   = "% of the engine’s samples"
	allKernel   = "all in the kernel"
)

// ratesOf says at which rates the samples of a panel were taken.
func ratesOf(p *chart.Panel) string {
	if most := mostPublished(p.Rows[0]); most > 0 {
		return fmt.Sprintf("no more than %d containers a second, the paper’s highest rate", most)
	}
	return "all rates"
}

func flamesHow(rates string) string {
	return "Samples of the stacks of the engine’s processes while containers were started at " + rates + ": the width of a box is the share of the samples that have the function in " +
		"this place. At the foot is the program; what a function called stands on it. Grey boxes are the kernel’s, white ones the program’s. Boxes without a name are too narrow for one."
}

func flameHeading(name string, samples int) string {
	return fmt.Sprintf("%s: %s", name, words.Count(samples, "sample"))
}

func flameSaid(name string, root *chart.Flame) string {
	return fmt.Sprintf("%s, of %s: %s", name, words.Count(root.N, "sample"), root.Said())
}

func flamesAlt(said []string) string { return "Boxes on each other. " + strings.Join(said, "; ") + "." }

func worksHow(rates string) string {
	return "Samples were taken at " + rates + ". Bars in grey are the kernel’s work, bars in white the programs’. A sample’s class is the first of a list of classes of which a function is in its stack (docs/studies.md); how " +
		"exactly a share is known from round to round stands in the table of the other metrics."
}

func worksGroup(name string, samples int) string {
	return fmt.Sprintf("%s, %s", name, words.Count(samples, "sample"))
}

func percent(share float64) string { return words.Digits(share, 3) + " %" }

func worksAlt(said []string) string { return "Bars, in percent. " + strings.Join(said, "; ") + "." }
