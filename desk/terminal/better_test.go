package terminal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/notebook/notebooktest"
)

func streamed(t *testing.T, f *notebooktest.Folder) *data.Summary {
	t.Helper()
	return read(t, data.Options{}, f.Write(t))
}

// Each metric with a direction has a table whose head says which values are better. Verdicts follow the metric's direction, and ratios are ratios of
// the metric itself.
func TestMetricsOfTheirOwn(t *testing.T) {
	s := streamed(t, notebooktest.Stream())
	var b bytes.Buffer
	if err := terminal.Summary(&b, s, terminal.Screen{Width: 100}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"Stream in Docker has 1", " lower copy bandwidth with --cpus (15.", "Docker lowers the copy bandwidth of stream by at most 0.", "Stream in a VM has ", "Copy bandwidth; higher is better.",
		"\nstream on bench: copy bandwidth in GB/s, higher is better\n", "\nstream on bench: triad bandwidth in GB/s, higher is better\n", "\nstream on bench: latency in us\n",
		"passes 10", "  stream at 2/4GB, triad bandwidth: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, not := range []string{"costs", "higher is better, higher"} {
		if strings.Contains(text, not) {
			t.Errorf("it says %q", not)
		}
	}
	// The container that loses most is the first finding, and the table's ratios are below 1.
	triad := text[strings.Index(text, "triad bandwidth in"):]
	if row := triad[strings.Index(triad, "VM, CPU set"):]; !strings.Contains(row[:strings.Index(row, "\n")], " 0.8") {
		t.Errorf("of the VM: %.100s", row)
	}
	if t.Failed() {
		t.Log(text)
	}

	var answer struct {
		Rows []struct {
			Treatment, Better string
			Also              []struct {
				Name, Better string
				Ratio        *struct{ Value, Low, High *float64 }
			} `json:"secondary_metrics"`
		}
	}
	b.Reset()
	if err := export.Summary(&b, s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	for _, r := range answer.Rows {
		if len(r.Also) != 3 || r.Better != "higher" || r.Also[0].Better != "higher" || r.Also[1].Better != "lower" || r.Also[2].Better != "" || r.Also[1].Ratio == nil || r.Also[1].Ratio.Low == nil || r.Also[2].Ratio != nil {
			t.Errorf("%+v", r)
		}
	}
}

func TestAdviceAndChangesOfABandwidth(t *testing.T) {
	s := streamed(t, notebooktest.Stream())
	a, err := advise.Of(s, advise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := terminal.Advice(&b, a, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Higher is better. Ranked by the lower end of the 95 % interval.", "whose lower end is the highest.", "estimated at no less than that lower end", "copy bandwidth [GB/s]"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the advice does not say %q: %s", want, b.String())
		}
	}
	f := notebooktest.Stream()
	f.Seed, f.Mean["stream cn docker pinned 2/4GB"] = 3, 18
	c, err := compare.From(s, streamed(t, f), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := terminal.Comparison(&b, c, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"copy bandwidth is slower, 10", "; the other 6 figures are equivalent within 1 %", "stream, Docker, CPU set (--cpuset-cpus), 2/4GB, copy bandwidth: 10", ", which is worse; the mean −10.0 %\n", "stream, Docker, CPU set (--cpuset-cpus), 2/4GB, latency: 1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the comparison does not say %q: %s", want, b.String())
		}
	}
}
