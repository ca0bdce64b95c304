package stats

import "math"

// Levels are the variances of a ratio's noise on the two levels of a study, as shares of the ratio squared (Kalibera and Jones, 2013,
// sections 6 and 7). Trial is the variance of one trial in each of the two guests: more trials in a guest average it away. Guest is the variance
// between rounds, from what the guests of one round share: only more rounds average it away.
type Levels struct {
	Trial, Guest float64
	Error        float64 // standard error of Guest, which is estimated as a difference and may come out below zero
	Free         int     // degrees of freedom of Trial
	Rounds       int     // that they are estimated from
}

// LevelsOf estimates the levels of the ratio of x to y, where x[i] and y[i] are the trials of the same round. Where y is nil, they are the levels of x's
// mean. Nothing is known from fewer than two rounds, and nothing of Trial where no guest had two trials: Free is then 0.
func LevelsOf(x, y [][]float64) (l Levels) {
	if len(x) < 2 {
		return l
	}
	l.Rounds = len(x)
	rest := make([]float64, len(x)) // of the rounds' values, when what slows a whole round is taken off
	var shared float64              // of their variance that is of the trials
	for sign, side := range [][][]float64{x, y} {
		if side == nil {
			continue
		}
		values := make([]float64, len(side))
		var squares, inverse float64
		free := 0
		for i, trials := range side {
			values[i] = mean(trials)
			for _, v := range trials {
				squares += (v - values[i]) * (v - values[i])
			}
			free += len(trials) - 1
			inverse += 1 / float64(len(trials)) / float64(len(side))
		}
		of := mean(values)
		if of == 0 {
			return Levels{Rounds: len(x)}
		}
		if free > 0 {
			within := squares / float64(free) / of / of
			l.Trial, l.Free, shared = l.Trial+within, l.Free+free, shared+within*inverse
		}
		for i, v := range values {
			rest[i] += v / of * float64(1-2*sign)
		}
	}
	all := scatter(rest, mean(rest)) * float64(len(rest))
	l.Guest, l.Error = all-shared, all*math.Sqrt(2/float64(len(rest)-1))
	return l
}

// Plus pools the levels of two ratios that get as many trials in a guest.
func (l Levels) Plus(o Levels) Levels {
	return Levels{l.Trial + o.Trial, l.Guest + o.Guest, l.Error + o.Error, l.Free + o.Free, max(l.Rounds, o.Rounds)}
}

// From so many degrees of freedom and rounds on Trial and Guest are known well enough.
const (
	pilots      = 4
	pilotRounds = 3
)

// MostTrials are the most that a guest is given.
const MostTrials = 100

// spared is the least cost of a guest, as a share of a trial's cost, at which two hundred rounds can lead to more trials in fewer guests. A Guest
// variance that is indistinguishable from zero counts as a tenth of Trial then. Below this cost, Tare runs no trials to learn Trial.
const spared = 0.2

// Trials returns how many trials in each guest make the ratio known soonest, from least to MostTrials. Making and removing a round's guests
// costs guests, and a trial in each of them costs trials, in the same unit. The optimum is √(guests/trials · Trial/Guest) (Kalibera and Jones,
// section 7). Until both variances are known, they count as equal: √(guests/trials), and at least two. So Tare does not make a guest that costs a
// hundred trials for one or two trials. A Guest variance that is indistinguishable from zero counts as its standard error. Many trials are then
// chosen only after many rounds.
func (l Levels) Trials(guests, trials float64, least int) int {
	switch {
	case guests < spared*trials:
		return least
	case l.Free < pilots || l.Rounds < pilotRounds:
		return max(least, 2, int(math.Round(min(math.Sqrt(guests/trials), MostTrials))))
	}
	n := math.Sqrt(guests / trials * l.Trial / max(l.Guest, l.Error))
	if !(n > float64(least)) { // nor where there is no noise at all
		return least
	}
	return int(math.Round(min(n, MostTrials)))
}

// Width is half the width of the ratio's interval, as a share of it, after so many rounds of so many trials in a guest.
func (l Levels) Width(rounds, trials int, c Confidence) float64 {
	return c.critical(rounds) * math.Sqrt((l.Guest+l.Trial/float64(trials))/float64(rounds))
}

// Spread is the standard deviation of the values as a share of their mean.
func Spread(values []float64) float64 {
	m := mean(values)
	return math.Sqrt(scatter(values, m)*float64(len(values))) / math.Abs(m)
}
