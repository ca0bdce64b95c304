package study

import (
	"math"
	"strconv"
	"time"

	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
)

// If the trials of a guest take less than worth times the time of its preparation, most of the time is wasted. Tare then proposes how
// trials can take the share fair of the guests' time.
const (
	worth = 0.1
	fair  = 0.2
)

// preparation finds work for which preparing guests takes nearly all the time, and proposes what would help.
type preparation struct {
	allocation
	works map[string]*workload.Ready // by Label
	known map[string]bool            // by Label: the cost of its guests is known, and was reported if necessary
}

// found are the works that are mostly preparation. Each is found once, when this session knows the cost of guests of all its
// treatments.
func (p preparation) found() (all []*notebook.Message) {
	for _, t := range p.study.Treatments {
		label := t.Label()
		if p.known[label] {
			continue
		}
		preparing, working := p.price(label)
		if p.known[label] = working > 0; float64(working) >= worth*float64(preparing) {
			continue // or both are zero
		}
		all = append(all, p.longerGuests(t, label, preparing, working))
	}
	return all
}

// price is how long preparing the guests of a work takes in the whole study, and how long their trials take; 0 and 0 if that is not
// known yet. Emulated treatments do not count, because nobody wants more of their trials. Treatments whose number of trials the run
// decides do not count either.
func (p preparation) price(label string) (preparing, working time.Duration) {
	d := p.study.Design
	for _, t := range p.study.Treatments {
		if t.Label() != label || !t.Representative() || p.gaveUp[t.ID] || !p.fixed && p.applies(t) {
			continue
		}
		c := p.costs.of[t.ID]
		if c.trials == 0 || p.failing[t.ID] > 0 { // a trial that fails may be over at once
			return 0, 0
		}
		guests := time.Duration(d.Most(t))
		preparing, working = preparing+guests*c.guest(), working+guests*time.Duration(p.each())*c.trial()
	}
	return preparing, working
}

// each is how many measured trials the study has a guest do, traced ones included.
func (p preparation) each() int {
	n := p.study.Design.Trials
	if len(p.study.Explain) > 0 {
		n *= 2
	}
	return n
}

// longerGuests is a message with the share of the guests' time that the trials of a work take, and with what would raise it to fair.
func (p preparation) longerGuests(t notebook.Treatment, label string, preparing, working time.Duration) *notebook.Message {
	d, w := p.study.Design, p.works[label].Workload
	const part = fair / (1 - fair) // of what preparing takes
	spent, trials := preparing.Seconds(), working.Seconds()
	var guest, longer any // the proposed number of measured trials in a guest, and the proposed length of the work; nil: impossible
	if n := math.Ceil(part * spent / trials * float64(d.Trials)); n <= studyfile.MostRounds {
		guest = n
	}
	warmups := trials / float64(p.each()) * float64(d.Warmups) // preparing includes them, and they grow with the work
	if w.Load != nil && len(w.Load.Warm) > 0 {
		warmups = 0
	}
	length, _ := strconv.Atoi(t.Params[w.Length]) // 0 is the whole input, as for FFmpeg's frames
	if n := math.Ceil(float64(length) * part * (spent - warmups) / (trials - part*warmups)); n > float64(length) && n < math.MaxInt32 && w.Params[w.Length].Most(int(n)) == int(n) {
		longer = n
	}
	return notebook.Say("prepared-for-little", "label", label, "share", trials/(spent+trials), "trials", guest, "chosen", !p.fixed, "param", w.Length, "length", longer, "fair", fair)
}
