package words

import (
	"tare/desk/data"
	pagingkind "tare/notebook/kinds/paging"
)

// PaperFaults are an application's page faults in the paper "characterization", in percent.
type PaperFaults struct {
	Name  string
	Kinds []float64 // in the order of notebook.FaultKinds, which has one more
}

// PublishedFaults is its Table 5.1.
var PublishedFaults = []PaperFaults{
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

// PublishedRepeated is the paper's mean share of page faults that repeat a translation, in percent (section 5.2.2).
const PublishedRepeated = 35.74

// publishedGroupable are the shares of groupable entries that section 5.2.1 prints of one application, in percent, by the workload that stands for it and
// the state.
var publishedGroupable = map[[2]string]struct {
	share float64
	of    string
}{
	{"httpd", pagingkind.Initial}:       {76.3, "HTTPd"},
	{"fio-mapped", pagingkind.Initial}:  {2.63, "FIO"},
	{"mapped-store", pagingkind.Steady}: {98, "MongoDB"},
	{"pagerank", pagingkind.Steady}:     {25.3, "Graphchi"},
	{"fio-mapped", pagingkind.Steady}:   {55.3, "FIO"},
}

// PublishedGroupable is the paper's share of groupable entries in a state, in percent (section 5.2.1), and whose it is: the workload's, where the paper prints
// that, or the mean of its applications.
func PublishedGroupable(workload, state string) (share float64, of string) {
	if p, known := publishedGroupable[[2]string{workload, state}]; known {
		return p.share, p.of
	}
	if state == pagingkind.Steady {
		return 63.7, "mean"
	}
	return 53, "mean"
}

// PageStateName names a state as the paper does.
func PageStateName(state string) string {
	if state == pagingkind.Steady {
		return "at the steady state"
	}
	return "at the initial state"
}

// FaultKind names a kind of page faults in a heading, as Table 5.1 does.
func FaultKind(kind string) string {
	if n := map[string]string{"copy-on-write": "CoW", "anonymous": "Anon", "write-protect": "WP"}[kind]; n != "" {
		return n
	}
	return capital(kind)
}

// Read says how many guests there were when a row's page tables or faults were read, to follow what its table is of; empty where they were not.
func Read(r *data.Row) string {
	if r.Paging == nil {
		return ""
	}
	return ", " + Count(r.Paging.Guests, "guest") + " at once"
}
