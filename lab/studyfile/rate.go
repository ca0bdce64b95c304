package studyfile

import (
	"fmt"
	"strconv"

	"tare/lab/workload"
	"tare/notebook"
)

// MostRate is the greatest rate of a load, in requests a second.
const MostRate = 1_000_000

// rateSeconds is how long a trial asks a service at a rate: for 200 requests, so that two are slower than the
// p99, but for half a minute at most, so that guests often take turns.
func rateSeconds(rate int) int { return min((200+rate-1)/rate, 30) }

// RateTrials is how many trials a guest gets in a round where a service is asked at a rate: some 4 s of them.
func RateTrials(rate int) int { return max(1, 4/rateSeconds(rate)) }

// atRate makes a trial of the workload a load at the use's rate.
func (u Use) atRate(w *workload.Workload) {
	load := func(seconds int) []string {
		return workload.Expand(w.Load.Open, w.AtRate(map[string]string{}, u.Rate, seconds))
	}
	w.Load.Command, w.Load.Warm = load(rateSeconds(u.Rate)), load(1)
	if len(w.Also) > 0 || len(u.Metrics) > 0 {
		return // the shipped load, or the user, names the metrics
	}
	for _, m := range []notebook.Metric{{Name: "p99", Unit: "s"}, {Name: "requests_per_second", Unit: "1/s", Better: notebook.Neither}, {Name: workload.ErrorsKey, Unit: "1", Better: notebook.Neither}} {
		w.Also = append(w.Also, workload.Metric{Metric: m})
	}
}

// checkRate checks the rate of the load of a service.
func (s *Spec) checkRate(u Use) *problem {
	switch {
	case u.Rate == 0:
		return nil
	case u.Port == 0:
		return wrong("rate: is only for a service of your own: name its port with service:", "rate")
	case s.measure != nil:
		return wrong(fmt.Sprintf("rate: measures response times, but the study measures %s: leave out one of them", s.measure.Name), "rate")
	case u.Rate < 1 || u.Rate > MostRate:
		return wrong("rate: "+strconv.Itoa(u.Rate)+": must be from 1 to "+strconv.Itoa(MostRate)+" requests a second", "rate")
	}
	return nil
}
