package terminal

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/predict"
	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// predictions are of a work that was run and of one that was observed, and of what was left out of a calibration.
func predictions() (run, seen *predict.Forecasts, checks []predict.Check) {
	docker := &predict.Environment{Treatment: notebooktest.Treatment("cn docker pinned 1/4GB")}
	gvisor := &predict.Environment{Treatment: notebooktest.Treatment("cn gvisor pinned 1/4GB")}
	bare := &predict.Environment{Treatment: notebooktest.Treatment("bm 1/4GB")}
	event := func(name string) predict.Event {
		for _, e := range predict.Events {
			if e.Name == name {
				return e
			}
		}
		panic(name)
	}
	nan := math.NaN()
	part := func(name string, v float64) predict.Part {
		return predict.Part{Event: event(name), Rate: 1e4, Value: v, Low: v / 2, High: 2 * v}
	}
	work := &predict.Work{Treatment: notebooktest.Treatment("nginx bm 1/4GB"), Trials: 3}
	few := predict.Prediction{Environment: docker, Ratio: 1.031, Low: 0.98, High: 1.09, Parts: []predict.Part{part("open_calls", 0.021), part("file_calls", 0.012), part("other_waits", -0.001)}}
	many := predict.Prediction{Environment: gvisor, Ratio: 3.2, Low: 2.1, High: 4.9, Parts: []predict.Part{part("socket_calls", 1.2), part("poll_calls", 0.6), part("file_calls", 0.3), part("sync_calls", -0.01)}}
	refused := predict.Prediction{Environment: gvisor, Ratio: nan, Low: nan, High: nan, Refused: predict.Unlike{Event: event("io_uring_calls")}}
	run = &predict.Forecasts{
		Works:   []predict.Forecast{{Work: work, Predictions: []predict.Prediction{few, many}}, {Work: work, Predictions: []predict.Prediction{few, refused}}},
		Skipped: []predict.Skipped{{Treatment: notebooktest.Treatment("redis bm 1/4GB"), Why: predict.Untraced{}}},
		Doubts:  []data.Doubt{predict.OtherKernel{Calibration: "6.18", Run: "7.0"}},
	}
	many.Environment = bare
	seen = &predict.Forecasts{Works: []predict.Forecast{{Work: work, Reference: docker, Seconds: 30, Predictions: []predict.Prediction{many, refused}}}}
	left := []predict.Left{
		{Row: &predict.Row{Work: work, Ratio: 5.2, Low: 5.1, High: 5.3, Shown: true}, Predicted: many, Others: 2},
		{Row: &predict.Row{Work: work, Ratio: 3.1, Low: 3, High: 3.2, Shown: true}, Predicted: many, Others: 2},
		{Row: &predict.Row{Work: work, Ratio: 1, Low: 0.99, High: 1.01}, Predicted: few, Others: 2},
		{Row: &predict.Row{Work: work, Ratio: 9, Low: 8, High: 10, Shown: true}, Predicted: refused, Others: 2},
	}
	checks = []predict.Check{{Environment: gvisor, Left: left, Quality: predict.QualityOf(left)}}
	return run, seen, checks
}

func TestPredictions(t *testing.T) {
	run, seen, checks := predictions()
	var b bytes.Buffer
	for _, write := range []func() error{
		func() error { return Forecasts(&b, run, Screen{Width: 100}) },
		func() error { return Forecasts(&b, seen, Screen{Width: 60}) },
		func() error { return Checks(&b, checks, run.Skipped, false, Screen{Width: 110}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		b.WriteString("----\n")
	}
	golden.Check(t, "predicted.txt", b.Bytes())
	b.Reset()
	if err := Checks(&b, checks, nil, true, Screen{}); err != nil || strings.Count(b.String(), "\n  nginx ") != 4 || !strings.Contains(b.String(), "unlike the calibration") {
		t.Errorf("all: %v: %s", err, &b)
	}
}
