// Package arrivals holds the configuration and the records of a study of the kind "arrivals": how fast containers start when their
// starts are requested at a rate (paper "characterization", section 5.1).
package arrivals

import (
	"math"
	"slices"
	"time"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "arrivals"

// Seen is what a trial recorded.
type Seen struct {
	Bringup *Bringup `json:"bringup,omitempty"`
	Profile *Profile `json:"profile,omitempty"` // nil: no samples were taken
}

// Config is how a study starts containers under load (paper "characterization", section 5.1.1). A number of containers is made
// ahead, and their starts are requested at a rate, whether or not the engine has answered. The rate, how requests follow each
// other, and what a request starts are factors of the treatment: FactorRate, FactorSpacing and FactorFrom.
type Config struct {
	ForS     float64 `json:"for_s"`             // seconds for which requests arrive
	Least    int     `json:"least"`             // least number of requests, if the rate makes fewer in that time
	Most     int     `json:"most"`              // greatest number of requests, if the rate makes more
	TimeoutS float64 `json:"timeout_s"`         // seconds without an answer: the engine or application then counts as no longer answering
	Profile  bool    `json:"profile,omitempty"` // whether samples show where the time goes

	Published []Published `json:"published,omitempty"`
}

// Published is a paper's start times at a rate, in seconds (Figure 5.1).
type Published struct {
	Rate int     `json:"rate" yaml:"rate" jsonschema:"required"`
	Mean float64 `json:"mean" yaml:"mean" jsonschema:"required"`
	P95  float64 `json:"p95" yaml:"p95" jsonschema:"required"`
}

// Starts is the number of requests at a rate.
func (a Config) Starts(rate int) int {
	return min(a.Most, max(a.Least, int(float64(rate)*a.ForS)))
}

// Times returns when each of n requests is due, counted from the first. All spacings have the same average rate; "" means SpacingEven.
// draw returns exponentially distributed numbers with a mean of 1.
func Times(spacing string, rate, n int, draw func() float64) []time.Duration {
	all := make([]time.Duration, n)
	at := 0.0 // in intervals
	for i := range all {
		switch spacing {
		case notebook.SpacingBurst:
			at = float64(i - i%rate)
		case notebook.SpacingPoisson:
			if i > 0 {
				at += draw()
			}
		default:
			at = float64(i)
		}
		all[i] = time.Duration(at * float64(time.Second) / float64(rate))
	}
	return all
}

// Request is one request to start a container. Times are seconds from the moment when the request was due; 0: not reached.
type Request struct {
	AtS     float64           `json:"at_s"`     // when the request was due, from when the first was due
	LateS   float64           `json:"late_s"`   // until the client made the request: the client's own error
	CallS   float64           `json:"call_s"`   // until the engine's call returned: as published
	HelloS  float64           `json:"hello_s"`  // until the container's first process had answered
	AnswerS float64           `json:"answer_s"` // until its application gave its first useful answer, or its function had ended
	Failure *notebook.Message `json:"failure,omitempty"`
}

// Bringup is the result of a trial's requests.
type Bringup struct {
	Offered  float64           `json:"offered"`           // requests a second
	Planned  int               `json:"planned"`           // requests
	Starts   []Request         `json:"starts"`            // the requests that were made
	Stopped  *notebook.Message `json:"stopped,omitempty"` // why there are fewer than planned
	ClientS  float64           `json:"client_s"`          // CPU time of the client during the requests
	OfS      float64           `json:"of_s"`              // seconds: from when the first request was due to the last answer
	CreatedS float64           `json:"created_s"`         // seconds: making all containers, before the requests
}

// Figures of a bring-up. The first is the metric of its trials: the mean time until the engine's call completes, as published.
var (
	StartMean   = notebook.Metric{Name: "start_mean", Unit: "s"}
	StartP50    = notebook.Metric{Name: "start_p50", Unit: "s"}
	StartP95    = notebook.Metric{Name: "start_p95", Unit: "s"}
	StartP99    = notebook.Metric{Name: "start_p99", Unit: "s"}
	StartMax    = notebook.Metric{Name: "start_max", Unit: "s"}
	HelloMean   = notebook.Metric{Name: "first_process_mean", Unit: "s"}
	AnswerMean  = notebook.Metric{Name: "first_answer_mean", Unit: "s"}
	AnswerP50   = notebook.Metric{Name: "first_answer_p50", Unit: "s"}
	AnswerP95   = notebook.Metric{Name: "first_answer_p95", Unit: "s"}
	AnswerP99   = notebook.Metric{Name: "first_answer_p99", Unit: "s"}
	AnswerMax   = notebook.Metric{Name: "first_answer_max", Unit: "s"}
	RateReached = notebook.Metric{Name: "rate_reached", Unit: "1/s"}
	ClientLate  = notebook.Metric{Name: "client_late_p99", Unit: "s"}
	ClientCPU   = notebook.Metric{Name: "client_cpu", Unit: "%"} // of one core
)

// InShort are the secondary metrics, after the mean, by which a platform is chosen, and those that show whether the client can be
// trusted.
var InShort = []notebook.Metric{StartP95, AnswerMean, AnswerP95, RateReached, ClientLate, ProfileInKernel}

// Also are the secondary metrics.
func (a Config) Also() []notebook.Metric {
	all := []notebook.Metric{StartP50, StartP95, StartP99, StartMax, HelloMean, AnswerMean, AnswerP50, AnswerP95, AnswerP99, AnswerMax, RateReached, ClientLate, ClientCPU}
	if a.Profile {
		all = append(all, ProfileMetrics...)
	}
	return all
}

// Figures are the values of StartMean and of Also.
func (b *Bringup) Figures() map[string]float64 {
	f := map[string]float64{}
	var call, hello, answer, late, done []float64
	for _, s := range b.Starts {
		late = append(late, s.LateS)
		if s.Failure != nil {
			continue
		}
		call, hello, answer, done = append(call, s.CallS), append(hello, s.HelloS), append(answer, s.AnswerS), append(done, s.AtS+s.CallS)
	}
	if len(call) == 0 {
		return f
	}
	for _, of := range []struct {
		values                   []float64
		mean, p50, p95, p99, max string
	}{
		{call, StartMean.Name, StartP50.Name, StartP95.Name, StartP99.Name, StartMax.Name},
		{answer, AnswerMean.Name, AnswerP50.Name, AnswerP95.Name, AnswerP99.Name, AnswerMax.Name},
	} {
		f[of.mean], f[of.p50], f[of.p95] = mean(of.values), quantile(of.values, 0.5), quantile(of.values, 0.95)
		f[of.p99], f[of.max] = quantile(of.values, 0.99), slices.Max(of.values)
	}
	f[HelloMean.Name], f[ClientLate.Name] = mean(hello), quantile(late, 0.99)
	// The rate is taken from completion to completion. From the first request on, the latency of the last one would count as a lack
	// of rate.
	if slices.Sort(done); len(done) > 1 && done[len(done)-1] > done[0] {
		f[RateReached.Name] = float64(len(done)-1) / (done[len(done)-1] - done[0])
	}
	if b.OfS > 0 {
		f[ClientCPU.Name] = 100 * b.ClientS / b.OfS
	}
	return f
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// quantile is the least value that at least this share of x does not exceed.
func quantile(x []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
