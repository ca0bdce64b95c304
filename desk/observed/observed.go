// Package observed says of an observation of something that runs what held it back, with intervals.
package observed

import (
	"cmp"
	"math"
	"slices"

	"tare/notebook"
	"tare/stats"
)

// Share is which part of the time went on something.
type Share struct {
	Key     string         `json:"key"`     // one of notebook.ObservedWalls
	Seconds float64        `json:"seconds"` // of the whole time
	Share   stats.Estimate `json:"share"`   // of the time, from 0 to 1: the mean over the parts of the time, and the interval by their differences
	Sure    bool           `json:"sure"`    // the interval, corrected for all keys, does not reach 0
}

// Answer is what an observation says.
type Answer struct {
	*notebook.Observation
	Account []Share `json:"account"`          // all that occurred, in the order of notebook.ObservedWalls; the shares add up to 1
	Held    []Share `json:"held"`             // what held the target back, most first; none if nothing did
	Advice  *Advice `json:"advice,omitempty"` // absent if nothing was replayed
}

// holds are what can hold a target back, if it would do something: it is ready, or it waits for what the host has too little of. What it
// waits for beyond that, requests or time, may be what it is there for.
var holds = []string{notebook.WallStolen, notebook.WallThrottled, notebook.WallCore, notebook.WallMemory, notebook.WallBlock}

// idle are the waits that may be what a server is there for.
var idle = []string{notebook.WallNetwork, notebook.WallFutex, notebook.WallSleep, notebook.WallOther}

// Worth is the least share of the time that is said to hold a target back.
const Worth = 0.01

// From makes the answer of an observation.
func From(o *notebook.Observation) *Answer {
	a := &Answer{Observation: o, Account: []Share{}, Held: []Share{}}
	for _, key := range notebook.ObservedWalls {
		s := share(o.Slices, key)
		if s.Seconds == 0 {
			continue
		}
		a.Account = append(a.Account, s)
		if slices.Contains(holds, key) && s.Share.Value >= Worth && (s.Sure || key == notebook.WallThrottled && counted(o)) {
			a.Held = append(a.Held, s)
		}
	}
	a.Advice = advice(o)
	slices.SortStableFunc(a.Held, func(x, y Share) int { return cmp.Compare(y.Seconds, x.Seconds) })
	return a
}

// counted reports whether the kernel itself counted that the CPU limit was spent. It comes in bursts, so its share differs between parts of the time,
// but there is no doubt about it.
func counted(o *notebook.Observation) bool { return o.Quota != nil && o.Quota.Exhausted > 0 }

// share is the part of the time that went on key.
func share(all []notebook.ObservedSlice, key string) Share {
	s := Share{Key: key}
	var parts []float64
	longest, sum := 0.0, 0.0
	for _, slice := range all {
		longest = math.Max(longest, slice.Seconds)
	}
	for _, slice := range all {
		s.Seconds += slice.Wall[key]
		sum += slice.Seconds
		if slice.Seconds > longest/2 { // the last one may be of nearly no time
			parts = append(parts, slice.Wall[key]/slice.Seconds)
		}
	}
	s.Share = stats.Mean(parts, stats.Sure(1))
	s.Share.Value = s.Seconds / sum
	s.Share.Low, s.Share.High = math.Max(0, s.Share.Low), math.Min(1, s.Share.High)
	s.Sure = stats.Mean(parts, stats.Sure(1).Share(len(notebook.ObservedWalls))).Low > 0
	return s
}

// Of returns the share of a key; a zero Share if nothing went on it.
func (a *Answer) Of(key string) Share {
	if i := slices.IndexFunc(a.Account, func(s Share) bool { return s.Key == key }); i >= 0 {
		return a.Account[i]
	}
	return Share{Key: key}
}

// Idling is which part of the time all threads waited for what they may be there for.
func (a *Answer) Idling() (sum float64) {
	for _, key := range idle {
		sum += a.Of(key).Share.Value
	}
	return sum
}

// AheadOf is the time for which the target's threads waited for cores that others had, added over its threads.
func (a *Answer) AheadOf() (sum float64) {
	for _, who := range a.Ahead {
		sum += who.Seconds
	}
	return sum
}
