package study

import "time"

// costs are what guests took so far in this session, by treatment.
type costs struct {
	progress *progress
	of       map[string]cost
}

// cost is what a treatment's guests took.
type cost struct {
	guests, trials int           // trials: measured ones
	preparing      time.Duration // making and removing its guests: all that is not a measured trial
	working        time.Duration // measured trials
}

func (c cost) guest() time.Duration { return c.preparing / time.Duration(max(c.guests, 1)) }
func (c cost) trial() time.Duration { return c.working / time.Duration(max(c.trials, 1)) }

// add adds a guest that took this time for so many measured trials.
func (c costs) add(id string, trials int, preparing, working time.Duration) {
	was := c.of[id]
	c.of[id] = cost{was.guests + 1, was.trials + trials, was.preparing + preparing, was.working + working}
}

// lasts is about how long a guest of the treatment takes in the round. A treatment that had no guest yet may take as long as the
// longest of the others.
func (c costs) lasts(id string, round int) (d time.Duration) {
	if of := c.of[id]; of.guests > 0 {
		trials := c.progress.trials(id, round)
		if len(c.progress.study.Explain) > 0 {
			trials *= 2
		}
		return of.guest() + time.Duration(trials)*of.trial()
	}
	for _, of := range c.of {
		d = max(d, (of.preparing+of.working)/time.Duration(of.guests))
	}
	return d
}
