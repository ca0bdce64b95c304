package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/lab/studyfile"
	"tare/notebook"
)

// A guest whose trials take less than worth of what preparing it takes was prepared for next to nothing. What is proposed then would make
// trials a share of the guests' time that is fair.
const (
	worth = 0.1
	fair  = 0.2
)

// preparation says of each work, once, that nearly all of its time goes to preparing guests, and what would do, as soon as it is known in this
// session what a guest of each of its treatments costs. Where the run itself decides how many trials a guest does, it sees to that.
func (r *Run) preparation() {
	if r.Plan.rules.Once != "" {
		return // each guest is for its one trial
	}
	for _, t := range r.Plan.Study.Treatments {
		label := t.Label()
		if r.priced[label] {
			continue
		}
		preparing, working := r.price(label)
		if r.priced[label] = working > 0; float64(working) >= worth*float64(preparing) {
			continue // or both are zero
		}
		text := r.longerGuests(t, label, preparing, working)
		r.notes = append(r.notes, "mostly preparation: "+text)
		if r.Watch != nil {
			r.Watch.Preparing(text)
		}
	}
}

// price is how long preparing the guests of a work takes in the whole study, and how long their trials; 0 and 0, while that is not known. What is
// emulated does not count: nobody wants more of its trials.
func (r *Run) price(label string) (preparing, working time.Duration) {
	d := r.Plan.Study.Design
	for _, t := range r.Plan.Study.Treatments {
		if t.Label() != label || !t.Representative() || r.gaveUp[t.ID] || r.allocates() && r.ruled(t) {
			continue
		}
		c := r.costs[t.ID]
		if c.trials == 0 || r.failing[t.ID] > 0 { // a trial that fails may be over at once
			return 0, 0
		}
		guests := time.Duration(d.Most(t))
		preparing, working = preparing+guests*c.guest(), working+guests*time.Duration(r.each())*c.trial()
	}
	return preparing, working
}

// each is how many measured trials the study has a guest do, traced ones included.
func (r *Run) each() int {
	n := r.Plan.Study.Design.Trials
	if len(r.Plan.Study.Explain) > 0 {
		n *= 2
	}
	return n
}

// longerGuests says how small a share trials are of the time of a work's guests, and by what it would be fair.
func (r *Run) longerGuests(t notebook.Treatment, label string, preparing, working time.Duration) string {
	d, w := r.Plan.Study.Design, r.Plan.ready[label].Workload
	const part = fair / (1 - fair) // of what preparing takes
	spent, trials := preparing.Seconds(), working.Seconds()
	var ways []string
	if n := math.Ceil(part * spent / trials * float64(d.Trials)); n <= studyfile.MostRounds {
		how := fmt.Sprintf("trials: %.0f", n)
		if r.allocates() {
			how += ", or --until, with which Tare chooses"
		}
		ways = append(ways, fmt.Sprintf("%.0f in a guest (%s)", n, how))
	}
	warmups := trials / float64(r.each()) * float64(d.Warmups) // a part of what preparing takes, and longer with longer work
	if w.Load != nil && len(w.Load.Warm) > 0 {
		warmups = 0
	}
	length, _ := strconv.Atoi(t.Params[w.Length]) // 0, as of FFmpeg's frames, is all that there is
	if n := math.Ceil(float64(length) * part * (spent - warmups) / (trials - part*warmups)); n > float64(length) && n < math.MaxInt32 && w.Params[w.Length].Most(int(n)) == int(n) {
		ways = append(ways, fmt.Sprintf("longer work (%s: %.0f)", w.Length, n))
	}
	text := fmt.Sprintf("%s: its trials are %.2g %% of the time that its guests take", label, 100*trials/(spent+trials))
	if len(ways) == 0 {
		return text
	}
	return text + fmt.Sprintf("; %s would make it %.2g %%", strings.Join(ways, " or "), 100*fair)
}
