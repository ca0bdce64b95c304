package study

import (
	"cmp"
	"strconv"

	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

// longer are the lengths that Tare proposes, as multiples of the study's length. They are few, so that folders of one study seldom differ in
// length.
var longer = []int{3, 10}

// worthLonger is the factor by which intervals must become narrower for a longer length to be worth its time although it is still too short.
const worthLonger = 2

// passable is half of an interval's width, as a share of the ratio, at which large differences can still be found.
const passable = 0.05

// decides is half of an interval's width, as a share of the margin, at which four of five studies without a difference find that there is none.
const decides = 0.6

// Short is work that is too short for the noise of this host: with the rounds and trials that the design allows, its ratios are not
// precise enough.
type Short struct {
	Label, Param  string
	Value, Enough string  // Param's value, and the proposed one; empty: longer work hardly helps
	Spread        float64 // of trials, as a share
	Width, Wanted float64 // half of an interval's width at the end of the design, as a share, and the width that is wanted
	Then          float64 // the Width to expect with Enough, or with the longest length
	Gain          float64 // how many times narrower than Width this is
	Margin        float64 // by which the answer is judged; 0: the design asks for a precision
	Rounds        int     // that suffice at Value; 0: too many, or the design has a stopping rule
	Open          bool    // the study lets Tare choose Enough
}

// Message reports that the work is too short, and proposes what would help.
func (s Short) Message() *notebook.Message {
	most := longer[len(longer)-1]
	var then any // the width, if even the longer work is not precise enough
	if s.Then > s.Wanted {
		then = s.Then
	}
	var advice *notebook.Message
	switch {
	case s.Enough == "" && s.Gain < worthLonger:
		advice = notebook.Say("longer-hardly-helps")
	case s.Enough == "":
		advice = notebook.Say("longer-would-bring", "then", s.Then, "times", most)
	case s.Open:
		advice = notebook.Say("length-chosen", "param", s.Param, "length", s.Enough, "asked", s.Value, "then", then)
	default:
		advice = notebook.Say("length-would-do", "param", s.Param, "length", s.Enough, "then", then)
	}
	return notebook.Say("trials-vary", "label", s.Label, "spread", s.Spread, "width", s.Width, "wanted", s.Wanted, "margin", s.Margin, "advice", advice, "rounds", s.Rounds)
}

// rehearsed is work that was rehearsed.
type rehearsed struct {
	design notebook.Design
	t      notebook.Treatment
	label  string
	work   *workload.Workload
	open   bool    // its length may be chosen
	apart  float64 // the distance of compared trials (Plan.apart)
	turns  bool    // its guests take turns
}

// tooShort decides from the times of consecutive trials in a rehearsal whether work is too short. A host's
// noise need not average out within a trial. So the variation of longer work follows from the means of one, two and four trials in a row
// (stats.NoisePartsOf).
func tooShort(r rehearsed, values []float64) (s Short, ok bool) {
	d, t, w := r.design, r.t, r.work
	length, _ := strconv.Atoi(t.Params[w.Length]) // 0 is the whole input, as for FFmpeg's frames
	if len(values) < 3 || length == 0 || d.Most(t) < 2 {
		return s, false
	}
	trials := d.Trials
	if d.Looks() > 0 {
		trials = stats.MostTrials
	}
	sure := stats.Sure(d.Looks())
	if d.Precision > 0 {
		sure = sure.Last()
	}
	drift, apart := stats.NoisePartsOf(values), r.apart
	spread := stats.Spread(values)
	if r.turns { // what the host does for longer than a turn cancels
		spread = min(spread, drift.Spread(apart))
	}
	s = Short{Label: r.label, Param: w.Length, Value: t.Params[w.Length], Open: r.open, Spread: spread, Wanted: d.Precision}
	if s.Wanted == 0 {
		s.Margin = cmp.Or(d.Decide, d.Margin, stats.Margin)
		s.Wanted = decides * s.Margin
	}
	levels := stats.Levels{Trial: 2 * spread * spread}
	s.Width = levels.Width(d.Most(t), trials, sure)
	propose := func(enough float64) bool {
		for _, times := range longer {
			s.Enough = strconv.Itoa(w.Params[w.Length].Most(length * times))
			s.Gain = drift.Gain(float64(times), apart)
			if s.Then = s.Width / s.Gain; s.Then <= enough {
				return true
			}
		}
		return false
	}
	// A longer length that is still too short costs time. It is worth it if a precision is asked for, or if noise hides all but large
	// differences.
	least := passable
	if d.Precision > 0 {
		least = d.Precision
	}
	if !propose(s.Wanted) && (s.Width <= least || !propose(least) && s.Gain < worthLonger) {
		s.Enough = ""
	}
	for n := d.Most(t) + 1; d.Looks() == 0 && n <= stats.MostRounds && s.Rounds == 0; n++ {
		if levels.Width(n, trials, sure) <= s.Wanted {
			s.Rounds = n
		}
	}
	return s, s.Width > s.Wanted && s.Enough != s.Value
}

// Lengths are the proposed lengths that a study lets Tare choose, by label (studyfile.Spec.Lengths).
func Lengths(short []Short) map[string]string {
	all := map[string]string{}
	for _, s := range short {
		if s.Open && s.Enough != "" {
			all[s.Label] = s.Enough
		}
	}
	return all
}
