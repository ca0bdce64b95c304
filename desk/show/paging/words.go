package paging

import (
	_ "embed"
	"fmt"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/paging"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(withParts(notebook.MetricNames{
	"page_faults_per_cpu_second":           "page faults per CPU second",
	"page_faults_repeated":                 "repeated page faults",
	"page_faults_common":                   "page faults on common translations",
	"page_faults_per_million_instructions": "page faults per million instructions",
	"page_faults_major":                    "major page faults",
	"page_faults_per_guest":                "page faults of a guest",
	"guest_cpu":                            "CPU time of a guest",
	"page_faults_file_repeated":            "repeated file faults",
	"page_faults_read":                     "read faults",
	"page_faults_copy_on_write":            "copy-on-write faults",
	"page_faults_shared":                   "shared faults",
	"page_faults_anonymous":                "anonymous faults",
	"page_faults_swap":                     "swap faults",
	"page_faults_write_protect":            "write-protect faults",
	"page_faults_unknown":                  "unknown faults",
	"page_faults_bring_up":                 "page faults of the bring-up",
})) && words.AddCaptions(inStates(map[string]string{
	kind.Entries:         "page-table entries",
	kind.Exclusive:       "exclusive entries",
	kind.Groupable:       "groupable entries",
	kind.Within:          "entries shared within guests",
	kind.Elsewhere:       "same frame, other address",
	kind.Active:          "active entries",
	kind.ActiveGroupable: "active and groupable entries",
	kind.Reused:          "entries used repeatedly",
	kind.ReusedGroupable: "groupable entries used repeatedly",
	kind.Accessed:        "accessed memory",
	kind.Huge:            "active entries of huge pages",
	kind.GroupableHuge:   "groupable entries of huge pages",
	kind.Large:           "entries of large folios",
	kind.Code:            "entries of programs and libraries",
	kind.Data:            "entries of data files",
	kind.ActiveCode:      "active entries of programs and libraries",
	kind.ActiveData:      "active entries of data files",
	kind.Engine:          "entries of the engine's processes",
	kind.EngineGroupable: "groupable entries of the engine's processes",
}))

// withParts adds the captions of parts of the page faults to those of all faults.
func withParts(all notebook.MetricNames) notebook.MetricNames {
	for _, m := range kind.Lately {
		all[kind.Later(m).Name] = all[m.Name] + ", second count"
	}
	for _, m := range kind.Wholly {
		all[kind.Whole(m).Name] = withBringUp(all[m.Name])
	}
	return all
}

// inStates are the captions of what is read in each state of page tables.
func inStates(read map[string]string) notebook.MetricNames {
	all := notebook.MetricNames{}
	for what, caption := range read {
		for _, state := range []string{kind.Initial, kind.Steady} {
			all[kind.Metric(what, state).Name] = caption + ", " + state
		}
	}
	return all
}

// paperFaults are an application's page faults in the paper "characterization", in percent.
type paperFaults struct {
	Name  string
	Kinds []float64 // in the order of notebook.FaultKinds, which has one kind more
}

// publishedFaults is Table 5.1 of the paper.
var publishedFaults = []paperFaults{
	{Name: "ArangoDB", Kinds: []float64{48.164, 0.668, 0.026, 47.973, 0.000, 3.168}},
	{Name: "MongoDB", Kinds: []float64{52.420, 0.730, 0.029, 43.477, 0.000, 3.345}},
	{Name: "HTTPd", Kinds: []float64{61.598, 0.857, 0.034, 33.484, 0.000, 4.028}},
	{Name: "Graphchi", Kinds: []float64{3.127, 0.365, 7.401, 85.166, 0.000, 3.940}},
	{Name: "FIO", Kinds: []float64{14.652, 0.223, 81.925, 1.722, 0.000, 1.478}},
	{Name: "Hashing Dense", Kinds: []float64{23.399, 2.265, 0.034, 38.473, 0.003, 35.826}},
	{Name: "Hashing Sparse", Kinds: []float64{29.976, 2.081, 0.030, 34.312, 0.002, 33.599}},
	{Name: "URIParser Dense", Kinds: []float64{21.104, 2.341, 0.037, 39.771, 0.000, 36.747}},
	{Name: "URIParser Sparse", Kinds: []float64{23.930, 2.228, 0.030, 36.916, 0.000, 36.896}},
	{Name: "Average", Kinds: []float64{30.930, 1.306, 9.950, 40.144, 0.001, 17.670}},
}

// publishedRepeated is the paper's mean share of page faults that repeat a translation, in percent (section 5.2.2).
const publishedRepeated = 35.74

// groupableOf are the shares of groupable entries that section 5.2.1 prints for single applications, in percent. The key is the
// workload that stands for the application, and the state.
var groupableOf = map[[2]string]struct {
	share float64
	of    string
}{
	{"httpd", kind.Initial}:       {76.3, "HTTPd"},
	{"fio-mapped", kind.Initial}:  {2.63, "FIO"},
	{"mapped-store", kind.Steady}: {98, "MongoDB"},
	{"pagerank", kind.Steady}:     {25.3, "Graphchi"},
	{"fio-mapped", kind.Steady}:   {55.3, "FIO"},
}

// publishedGroupable is the paper's share of groupable entries in a state, in percent (section 5.2.1). of names its subject: the
// workload's application, if the paper prints that share, or the mean of its applications.
func publishedGroupable(workload, state string) (share float64, of string) {
	if p, known := groupableOf[[2]string{workload, state}]; known {
		return p.share, p.of
	}
	if state == kind.Steady {
		return 63.7, "mean"
	}
	return 53, "mean"
}

// stateName names a state as the paper does.
func stateName(state string) string {
	if state == kind.Steady {
		return "at the steady state"
	}
	return "at the initial state"
}

// withBringUp names faults from bring-up to finish.
func withBringUp(faults string) string { return faults + ", including bring-up" }

// faultKind is a kind of page fault in a heading, as in Table 5.1.
func faultKind(kind string) string {
	if n := map[string]string{"copy-on-write": "CoW", "anonymous": "Anon", "write-protect": "WP"}[kind]; n != "" {
		return n
	}
	return words.Capital(kind)
}

var phrases = words.Phrases{
	Where: func(_ *data.Summary, r *data.Row) string {
		return ", " + words.Count(r.Config.(config).Guests, "guest") + " at once"
	},
	Verb:  "has",
	Of:    func(r *data.Row) string { return " " + words.Plain(words.Caption(r.Metric.Name)) },
	Times: func(r *data.Row) string { return " times the " + words.Plain(words.Caption(r.Metric.Name)) },
}

// Texts of the figures.
const (
	entriesTitle = "Page-table entries that several guests have"
	entriesAxis  = "% of the page-table entries"
	entriesHow   = "Each bar is the share of entries that are groupable: another guest has the same frame at the same address. Solid: those that are active, on the " +
		"kernel’s active list, too. What is beyond the bar is exclusive. The thin line is the 95 % interval of the groupable share. The grey line is the paper’s, of the application or, where it prints none, the mean of all."
	repeatedTitle = "Page faults that repeat another guest’s"
	repeatedAxis  = "% of the page faults"
	repeatedHow   = "Each bar is the share of page faults after which a page table has what another guest’s has had before: the same frame at the same address. The " +
		"thin line is its 95 % interval. The grey line is the mean of the paper’s applications."
)

// Texts of the figures of several applications.
const (
	rateTitle           = "Page faults by application"
	perInstructionsAxis = "page faults per million instructions"
	perCPUAxis          = "page faults per second of CPU time"
	rateHow             = "Each bar is how many page faults the guests of an application have, with its 95 % interval. The paper counts them per million " +
		"instructions, and so does Tare where the CPU counts instructions."
	copiesTitle = "Copy-on-write faults by application"
	copiesHow   = "Each bar is the share of copy-on-write faults in all page faults of an application’s guests, with its 95 % interval. The paper’s mean is 1.306 %."
)

// thePaper names the published value of an application, in long and in short form.
func thePaper(of string) []string { return []string{"the paper, " + of, "the paper"} }

func percent(v float64, digits int) string { return words.Digits(v, digits) + " %" }

// entriesSaid is a bar of entries in words.
func entriesSaid(b chart.Bar, elsewhere float64) string {
	return fmt.Sprintf("%s, %s: %s groupable, %s %% active and groupable, %s %% the same frame at another address", b.Group, b.Names[0], b.Words, words.Digits(b.Solid, 3), words.Digits(elsewhere, 3))
}

func repeatedSaid(b chart.Bar) string { return fmt.Sprintf("%s, %s: %s", b.Group, b.Names[0], b.Words) }

func entriesAlt(bars []string) string {
	return "Bars in two parts, in percent. " + strings.Join(bars, "; ") + "."
}
func applicationsAlt(axis string, bars []string) string {
	return "Bars of " + axis + ". " + strings.Join(bars, "; ") + "."
}
func repeatedAlt(bars []string) string { return "Bars, in percent. " + strings.Join(bars, "; ") + "." }

// Texts of the table.
const (
	caption = "Page faults by kind, in percent, and Table 5.1 of the paper: "
	guests  = "Guests"
)

func fromPaper(name string) string { return "the paper, " + name }
