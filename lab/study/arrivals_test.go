package study

import (
	"strings"
	"testing"

	"tare/notebook"
)

func TestArrivalsAreRead(t *testing.T) {
	a, err := (&Arrivals{Rates: []int{1, 8}, For: "4s", Least: 6, Most: 20}).parse()
	if err != nil || a.Starts(1) != 6 || a.Starts(4) != 16 || a.Starts(100) != 20 {
		t.Errorf("%+v, %v: want 6 requests at least, 20 at most, and as many as four seconds bring between", a, err)
	}
	for want, wrong := range map[string]Arrivals{
		"rates: is missing": {}, "rates: [2 1]": {Rates: []int{2, 1}}, "rates: [0]": {Rates: []int{0}}, "least: 30 to 20": {Rates: []int{1}, Least: 30, Most: 20},
		"for:": {Rates: []int{1}, For: "soon"}, "timeout:": {Rates: []int{1}, Timeout: "1ms"}, "published:": {Rates: []int{1}, Published: []notebook.PublishedRate{{Rate: 1}}},
	} {
		if _, err := wrong.parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", wrong, err, want)
		}
	}
	more, err := (&Arrivals{Rates: []int{1, 8}}).each([]map[string]string{{"x": "y"}})
	if err != nil || len(more) != 2 || more[1][notebook.ParamRate] != "8" || more[1]["x"] != "y" {
		t.Errorf("%v, %v: want each rate among the parameters", more, err)
	}
	if _, err := (&Arrivals{Rates: []int{1}}).each([]map[string]string{{notebook.ParamRate: "3"}}); err == nil {
		t.Error("a workload's own rate was taken for the requests'")
	}
}

// A host that runs short gets no more, before it has none left.
func TestRoomIsForeseen(t *testing.T) {
	memory, threads, err := unused()
	if err != nil {
		t.Fatal(err)
	}
	if err := (&hostRoom{memory: memory, threads: threads}).admit(); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads, keep: memory}).admit(); err == nil || !strings.Contains(err.Error(), "MiB of memory left") {
		t.Errorf("where all memory is kept: %v, want a word of it", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads + 1e9, n: 1}).admit(); err == nil || !strings.Contains(err.Error(), "processes and threads") {
		t.Errorf("of containers with a thousand million threads: %v, want a word of it", err)
	}
}
