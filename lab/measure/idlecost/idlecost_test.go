//go:build linux

package idlecost

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// dozer is a guest that uses a known CPU time, 3 ms a second, and reports it to the host.
type dozer struct {
	measuretest.Guest
	began time.Time
}

func (g *dozer) Ruler() crowd.Ruler           { return g }
func (g *dozer) Processes() ([]int, error)    { return []int{os.Getpid()}, nil }
func (g *dozer) Used() (time.Duration, error) { return time.Since(g.began) * 3 / 1000, nil }

// sleepy is a laboratory in which each idle guest slows the work down by one hundredth.
func sleepy(refused int) *measuretest.Lab {
	l := &measuretest.Lab{}
	l.Made = func(w crowd.Want) (crowd.Guest, error) {
		if l.Live == refused {
			return nil, errors.New("the bridge is full")
		}
		g := &dozer{began: time.Now()}
		g.Lab, g.T = l, w.Treatment
		g.Does = func(context.Context, ruler.Order) (ruler.Result, time.Duration, error) {
			d := time.Second * time.Duration(99+l.Live) / 100
			return ruler.Result{Elapsed: d}, d, nil
		}
		return g, nil
	}
	return l
}

// A trial gives the slowdown next to each number of idle guests, and what each idle guest uses. It removes all of them.
func TestTheCostOfIdleGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sleepy(-1)
		c := config{Guests: []int{1, 4, 16}, Runs: 2}
		tr, err := measuretest.Trial(t.Context(), t, c, l, measure.Cell{Treatment: notebook.Treatment{Platform: notebook.CN}, Ready: measuretest.Work()}, measure.Step{})
		if err != nil || tr.Failure != nil || l.Live != 0 || l.Most != 17 {
			t.Fatalf("%q, %v; %d guests at once, %d left", tr.Failure, err, l.Most, l.Live)
		}
		first, also := c.Metrics(nil, nil)
		want := map[string]float64{slowdown(1).Name: 1.01, slowdown(4).Name: 1.04, slowdown(16).Name: 1.16, cpuTime.Name: 3}
		for name, v := range want {
			if got, ok := tr.Figures[name]; !ok || math.Abs(got-v) > 1e-9 {
				t.Errorf("%s: %v, want %v", name, got, v)
			}
		}
		for _, m := range append(also, first) {
			if v, ok := tr.Figures[m.Name]; !ok || v < 0 {
				t.Errorf("%s is %v", m.Name, v)
			}
		}
		if tr.Value != tr.Figures[first.Name] || first != slowdown(16) {
			t.Errorf("the metric is %v: %v", first, tr.Value)
		}
	})
}

// If the host has no room for all idle guests, the trial fails with that cause, and nothing is left.
func TestIdleGuestsThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sleepy(3)
		tr, err := measuretest.Trial(t.Context(), t, config{Guests: []int{1, 4}, Runs: 1}, l, measure.Cell{Ready: measuretest.Work()}, measure.Step{})
		if want := "of-idle-guest cause=no-guest cause=the bridge is full guest=3 of=4"; err != nil || tr.Failure.String() != want || l.Live != 0 {
			t.Errorf("%q, %v, %d guests left; want %q", tr.Failure, err, l.Live, want)
		}
	})
}

func TestTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"{}":               "",
		"{guests: [1, 2]}": "",
		"{guests: [2, 1]}": "guests: [2 1]: must be numbers from 1 to 200, each greater than the one before",
		"{guests: [0]}":    "guests: [0]: must be numbers",
		"{runs: 101}":      "runs: 101: must be from 1 to 100",
		"{gusts: [1]}":     "unknown key gusts: did you mean guests?",
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		c, err := Kind.Part.Read(n.Content[0], nil)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if err == nil && text == "{}" && !slices.Equal(c.(config).Guests, []int{1, 4, 16}) {
			t.Errorf("%+v", c)
		}
	}
	if err := (config{}).Accepts(&workload.Workload{Service: &workload.Service{}}); err == nil {
		t.Error("a service was accepted")
	}
}
