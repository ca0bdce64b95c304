package data

import (
	"fmt"
	"testing"

	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A secondary metric that no trial of a workload's parameters printed is none of theirs; one that some printed stands with a gap for the others.
func TestAMetricThatIsOfOtherParameters(t *testing.T) {
	f := notebooktest.New(4)
	f.Study.Metrics["w"] = notebook.Metric{Name: "time", Unit: "s"}
	f.Study.Also = map[string][]notebook.Metric{"w": {
		{Name: "rate", Unit: "1/s", Better: notebook.Higher}, {Name: "clock", Unit: "Hz"}, {Name: "share", Unit: "1", Better: notebook.Higher},
	}}
	figures := map[string]map[string]float64{}
	for _, place := range []string{"bm", "cn docker pinned"} {
		f.Add("w kind=a "+place+" 1/1GB", 1)
		figures["w kind=a "+place+" 1/1GB"] = map[string]float64{"rate": 7, "clock": 1e9}
		f.Add("w kind=b "+place+" 1/1GB", 1)
		figures["w kind=b "+place+" 1/1GB"] = map[string]float64{}
	}
	figures["w kind=b bm 1/1GB"]["share"] = 0.5
	f.Trial = func(x *notebook.Trial) { x.Figures = figures[x.Treatment] }
	s, err := Read([]string{f.Write(t)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, table := range s.Tables() {
		text := ""
		for _, of := range InFigures(table) {
			text += fmt.Sprintf("%s of %d ", of[0].Metric.Name, len(of))
		}
		for _, c := range SecondaryColumns(table) {
			text += c.Metric.Name + " "
		}
		got[table[0].Treatment.Params["kind"]] = text
	}
	if n := len(s.Tables()[0]); got["a"] != fmt.Sprintf("rate of %d clock ", n) || got["b"] != fmt.Sprintf("share of %d ", n) {
		t.Errorf("%d rows: %q", n, got)
	}
}
