// Package stats says how sure a figure is. Pure functions of numbers: no files, no clock, no randomness.
//
// # Two levels
//
// A study runs rounds; in each round every treatment has one guest, and in that guest several trials. Trials of one
// guest resemble each other (same pages, same cores, same minute), so they are not independent evidence: a hundred
// trials in one guest say how steady that guest was and nothing about the next one. A round's value is therefore
// the mean of its trials, and intervals are made only from the rounds' values (Kalibera and Jones, "Rigorous
// benchmarking in reasonable time", 2013). A test shows how much too narrow an interval over all trials is.
//
// # Intervals
//
// [Mean] is Student's t over rounds. [Ratio] is Fieller's interval over rounds as blocks: in a round x and y were
// measured within minutes of each other and in random order, so what makes a whole round slow or fast cancels.
// Nothing is resampled, so the same values give the same interval.
//
// # The stopping rule
//
// A study that looks at its intervals and stops when they are narrow has a chance to stop just when they are
// narrow by luck. Such a study's intervals are therefore wider ([Confidence.Looks]): in at least 95 % of studies none of
// them, after any round up to the last that the design allows, misses the truth. One may then look after each round, stop
// when one likes, for whatever reason, and go on another day, up to that round. These are repeated confidence intervals
// (Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach", 1989) with Pocock's boundary
// (1977): each look's interval is Student's t at 1 − 0.05/K, where K is how many independent looks those are worth, which
// resemble each other: 8 at twenty rounds, 15 at a hundred.
//
// Where the rule is a precision, looking at a ratio ends with the first interval that is as narrow as asked ([Confidence.Precision]). If looking
// may end from three rounds on, that last interval is made at 98 %, as if it were the only one. The intervals before it are together made at 97 %. If
// looking may end only from twenty rounds on, the two levels are 96.6 % and 98.4 %, because more rounds are less often alike by luck. The end of a
// study then depends on the scatter of its rounds and not on their ratio. With normal noise the scatter says nothing about the ratio (Chow and
// Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the mean", 1965). One exception remains: the interval may
// be narrow by luck. From three rounds on, both levels together miss in at most 5 % of studies (TestTheLastLook). Studies end after half as many
// rounds as with one boundary for all looks.
//
// The intervals of a study without a rule are looked at once. Somebody may run more rounds because of the first result, and read all rounds
// together. This is another look, and its number of rounds depends on the first result. The interval over m such parts is made at 1 − 0.05/m²
// ([Confidence.Extensions]). In at most 3.2 % of studies any interval over two or more parts misses, no matter how many parts there are: this is
// 0.05·(1/4 + 1/9 + …). Pocock's boundary for m looks is too narrow there, because it assumes a fixed number of rounds. With five extensions and
// Pocock's boundary, 10 % of studies end with an interval that misses. Without a correction 16 % do, and with this one 5 %.
//
// Two kinds of sequences that hold for ever were considered. Sequences for bounded variables (betting, empirical Bernstein; Waudby-Smith and
// Ramdas, 2024) need bounds, which times do not have. After ten rounds they are wide compared with these intervals. Student's t with Lai's mixture
// (Wang and Ramdas, 2025) gives intervals a sixth wider at twenty rounds, which costs 40 % more rounds. It gives none before the fourth round.
//
// # Stalls
//
// A host that stalls makes some rounds slow for reasons unrelated to a platform. Nothing is dropped: slow rounds count in the means and widen the
// intervals. Next to a ratio stands [Robust], which slow rounds hardly move. Where it lies outside the ratio's interval, a few rounds have made
// that ratio.
//
// # What this does not hold for
//
// The coverage promised (95 %; the tests show 93 % at least, by simulation) is for ratios of round values whose
// noise is of benchmarks' kinds: normal, log-normal up to a spread of 50 %, Student's t with three degrees, one trial
// in three disturbed, guests that differ, and drift over the rounds that slows both treatments alike. It does not
// hold (TestCoverageEnds has the figures) where
//
//   - skewed noise or a rare disturbance strikes only one of the two treatments. Coverage is 91 % at a spread of 50 % and five
//     rounds, and 85 % at a spread of 130 % and ten rounds. It is 60 % where one trial in thirty takes three times as
//     long. Few rounds have mostly not seen the slow value that the mean contains, and no interval knows of it. A rule that ends a study when
//     its ratio is precise ends it before a stall comes: after few rounds, 64 % where one trial in twenty takes a fifth longer. So such
//     a rule waits for [LeastTrials] on each side (TestRareStalls), and [Rarest] says which stalls they cannot exclude;
//   - the host changes from one half of a round to the other by more than all other noise. Which treatment came
//     first is then all that differs, and with n rounds the same one comes first in all of them once in 2^(n−1):
//     25 % at three rounds, 6 % at five, 0.2 % at ten. Run ten rounds on such a host.
//
// An interval of a [Mean] assumes moreover that rounds are alike; under drift it speaks of the rounds that were run.
package stats

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Alpha is the share of intervals that may miss: all intervals are of 1 − Alpha.
const Alpha = 0.05

// Confidence is how sure an interval is to hold the truth.
type Confidence struct {
	Alpha float64 // the share of intervals that may miss it
	Looks int     // above 1: of studies in which any interval does that is made after any round up to this

	// Extensions is how often values were added, perhaps because of what those before said. Not together with Looks, which counts them.
	Extensions int

	// Precision above 0: looking at a ratio ends with the first interval of Floor values or more that lies within ± this share of it.
	Precision float64
	Floor     int
}

// Sure is the confidence of 95 % that intervals have by default, which are looked at so many times; 0: once.
func Sure(looks int) Confidence { return Confidence{Alpha: Alpha, Looks: looks} }

// Share is the confidence of each of several intervals, of which at most Alpha may miss together (Bonferroni). Looking does not end with one of them.
func (c Confidence) Share(of int) Confidence {
	return Confidence{Alpha: c.Alpha / float64(of), Looks: c.Looks, Extensions: c.Extensions}
}

// Extended is the confidence of intervals over the same values and others that are still to be added: where looks are counted, the same.
func (c Confidence) Extended() Confidence {
	c.Precision = 0
	if c.Looks == 0 {
		c.Extensions++
	}
	return c
}

// OneSided is the confidence of an interval whose ends each miss as often as both ends of this one together: two one-sided tests at Alpha each.
// Where values were added because of what those before said, the first verdict has had its Alpha, and bounds stay the interval's ends.
func (c Confidence) OneSided() Confidence {
	if c.Extensions == 0 {
		c.Alpha *= 2
	}
	return c
}

// lastShare is the part of Alpha that is left for the interval with which looking ends: the more, the more values it has at least, for of many values
// fewer are alike by luck. Fitted to simulated studies (TestTheLastLook), in which safe parts were 0.40 from 3 values on, 0.46 from 5, 0.57 from 10, 0.72
// from 20 and 0.77 from 30.
func (c Confidence) lastShare() float64 {
	l := math.Log(float64(max(c.Floor, leastFloor)) / leastFloor)
	return min(0.4+0.11*l+0.022*l*l, 0.85)
}

// leastFloor is the fewest values that looking ends with: of two, too many are alike by luck.
const leastFloor = 3

// A side of a ratio has enough trials for looking at it to end where it has so many, or as many as last so long together: of the trials of a
// treatment that stalls now and then, a few may all be without a stall, and scatter little for that reason.
const (
	LeastTrials  = 20
	LeastSeconds = 120
)

// Seen is what one treatment did in one round.
type Seen struct {
	Trials  int     // that succeeded
	Seconds float64 // that they took
}

// Floor is from how many rounds on looking may end: rounds at least, and as many as give each side enough trials, foreseen where there are
// too few. sides are the rounds that each side has. With trials 0 only rounds count, as in studies from before trials did.
func Floor(rounds, trials int, sides ...[]Seen) int {
	for _, side := range sides {
		var sum Seen
		enough := trials == 0 || len(side) == 0
		for i := 0; i < len(side) && !enough; i++ {
			sum.Trials, sum.Seconds = sum.Trials+side[i].Trials, sum.Seconds+side[i].Seconds
			if enough = sum.Trials >= trials || sum.Seconds >= LeastSeconds; enough {
				rounds = max(rounds, i+1)
			}
		}
		if !enough { // if further rounds are as these
			more := min(float64(trials)/float64(sum.Trials), LeastSeconds/sum.Seconds)
			rounds = max(rounds, len(side)+1, int(math.Ceil(min(more, MostRounds)*float64(len(side)))))
		}
	}
	return rounds
}

// Rarest gives N where a stall that strikes fewer than one run in N may not have been seen among so many runs: the rule of three, at 95 %. 0: there
// are too few runs to say anything.
func Rarest(runs int) int {
	if runs < 6 {
		return 0
	}
	return runs / 3
}

// Last is the confidence of the interval with which looking ends, where it does.
func (c Confidence) Last() Confidence { return Confidence{Alpha: c.lastShare() * c.Alpha} }

// ends says whether looking ends with this interval. Where one of those before it is as narrow, the last is too.
func (c Confidence) ends(q Quotient) bool {
	return c.Precision > 0 && q.N >= max(c.Floor, leastFloor) && Precise(q, c.Precision)
}

// made is what Student's t statistic exceeds at the ends of a ratio's interval that was made at this confidence.
func (c Confidence) made(q Quotient) float64 {
	if c.ends(q) {
		return c.Last().critical(q.N)
	}
	return c.critical(q.N)
}

// Level is that of each single interval: 0.95, or more where it is looked at often; of those before the last, where there is one.
func (c Confidence) Level() float64 { return 1 - c.single() }

// single is the share of single intervals that may miss.
func (c Confidence) single() float64 {
	if c.Precision > 0 {
		c.Alpha *= 1 - c.lastShare()
	}
	if c.Looks < 3 { // no interval is made of one round
		part := float64(1 + c.Extensions)
		return c.Alpha / (part * part)
	}
	// How many independent looks they are worth: fitted to simulated studies (TestLooksAreWorth), and a little more than it was there.
	l := math.Log(float64(c.Looks) / 2)
	return c.Alpha / (1 + (2.1*l+0.35*l*l)*(1+0.18*math.Log(Alpha/min(c.Alpha, Alpha))))
}

// criticals keeps what critical gave: of few numbers, which rules of stopping and simulations ask for again and again.
var criticals sync.Map

// critical is what Student's t statistic of n values exceeds at the interval's ends.
func (c Confidence) critical(n int) float64 {
	type question struct {
		Confidence
		n int
	}
	if t, known := criticals.Load(question{c, n}); known {
		return t.(float64)
	}
	t := c.student(float64(n-1), n)
	criticals.Store(question{c, n}, t)
	return t
}

// student is the same of a statistic with so many degrees of freedom, made of so many values.
func (c Confidence) student(free float64, n int) float64 {
	if c.Looks > 0 { // more rounds than the design allows are more looks
		c.Looks = max(c.Looks, n)
	}
	return Student(free, 1-c.Level())
}

// Student is what Student's t statistic with so many degrees of freedom exceeds, up or down, with the probability alpha.
func Student(free, alpha float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(1 - alpha/2)
}

// Estimate is a mean with its interval. Low and High are NaN where there is no interval (N < 2), Value where there is
// nothing to take a mean of.
type Estimate struct {
	Value, Low, High float64
	N                int // values that it is made of
}

// NoMean and NoRatio are what nothing is known of.
var (
	NoMean  = Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
	NoRatio = Quotient{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), AtLeast: math.NaN(), AtMost: math.NaN()}
)

// HasInterval says whether Low and High are known.
func (e Estimate) HasInterval() bool { return !math.IsNaN(e.Low) && !math.IsNaN(e.High) }

// Mean is the mean of rounds' values with its interval, by Student's t. Fewer than two values have no interval.
func Mean(values []float64, c Confidence) Estimate {
	e := NoMean
	if e.N = len(values); e.N == 0 {
		return e
	}
	e.Value = mean(values)
	if e.N < 2 {
		return e
	}
	half := c.critical(e.N) * math.Sqrt(scatter(values, e.Value))
	e.Low, e.High = e.Value-half, e.Value+half
	return e
}

// Quotient is a ratio of two means with its interval.
type Quotient struct {
	Value, Low, High float64 // NaN where unknown; Low −Inf and High +Inf where the data exclude no ratio
	N                int     // rounds that both have

	// AtLeast and AtMost are the one-sided bounds, by which findings are decided ([Quotient.Verdict]). A share Alpha of studies misses each
	// of them, so together they are the ends of an interval of 1 − 2·Alpha. Both are 0 where none were made: the interval decides then.
	AtLeast, AtMost float64
}

// Bounds are the one-sided bounds, or the interval's ends where none were made.
func (q Quotient) Bounds() (atLeast, atMost float64) {
	if q.AtLeast == 0 && q.AtMost == 0 {
		return q.Low, q.High
	}
	return q.AtLeast, q.AtMost
}

// bounded is the quotient with the ends of another of the same values, which was made for one side ([Confidence.OneSided]).
func (q Quotient) bounded(by Quotient) Quotient {
	q.AtLeast, q.AtMost = by.Low, by.High
	return q
}

// Quotient is the mean as what a ratio is known by, without one-sided bounds.
func (e Estimate) Quotient() Quotient {
	return Quotient{Value: e.Value, Low: e.Low, High: e.High, N: e.N}
}

// HasInterval says whether the interval is known and bounded.
func (q Quotient) HasInterval() bool {
	return !math.IsNaN(q.Low) && !math.IsInf(q.Low, 0) && !math.IsNaN(q.High) && !math.IsInf(q.High, 0)
}

// Contains says whether r is in the interval; never, where there is none.
func (q Quotient) Contains(r float64) bool { return q.Low <= r && r <= q.High }

// Number is a number as JSON has it: null where it is not known, or has no bounds.
type Number float64

// MarshalJSON writes NaN and the infinities, which JSON lacks, as null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !Finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// MarshalJSON writes the mean and its ends as [Number] writes them.
func (e Estimate) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value Number `json:"value"`
		Low   Number `json:"low"`
		High  Number `json:"high"`
		N     int    `json:"n"`
	}{Number(e.Value), Number(e.Low), Number(e.High), e.N})
}

// MarshalJSON writes the ratio as an [Estimate] is written.
func (q Quotient) MarshalJSON() ([]byte, error) {
	return json.Marshal(Estimate{q.Value, q.Low, q.High, q.N})
}

// Inverse is one over the quotient. Where the interval reaches to 0 or below it, one over it has no upper bound, or none at all.
func (q Quotient) Inverse() Quotient {
	i := Quotient{Value: 1 / q.Value, N: q.N}
	i.Low, i.High = inverse(q.Low, q.High)
	if q.AtLeast != 0 || q.AtMost != 0 {
		i.AtLeast, i.AtMost = inverse(q.AtLeast, q.AtMost)
	}
	return i
}

// inverse is one over what lies between two numbers.
func inverse(low, high float64) (from, to float64) {
	switch {
	case low < 0: // of 0 inside the interval, or of no bounds, one over it excludes nothing
		return math.Inf(-1), math.Inf(1)
	case low == 0:
		return 1 / high, math.Inf(1)
	}
	return 1 / high, 1 / low
}

// Ratio is the mean of x over the mean of y, where x[i] and y[i] are the values of two treatments in the same round,
// with its interval. x and y must be equally long: rounds in which one has no value do not belong here.
//
// The interval is Fieller's for pairs: every R for which the mean of x[i] − R·y[i] is not distinguishable from zero
// by Student's t. Where y's mean is itself not distinguishable from zero that set has no bounds, and Low and High
// are infinite. With fewer than two rounds they are NaN. Where c has a precision, it is the last interval if that is as narrow, else one of those before.
func Ratio(x, y []float64, c Confidence) Quotient {
	if len(x) != len(y) {
		panic("stats.Ratio: x and y are not pairs")
	}
	f, n := fiellerOf(x, y), len(x)
	if n < 2 {
		return f.q
	}
	if c.Precision > 0 {
		if q := f.at(c.Last().critical(n)); c.ends(q) {
			return q.bounded(f.at(c.Last().OneSided().critical(n)))
		}
	}
	return f.at(c.critical(n)).bounded(f.at(c.OneSided().critical(n)))
}

// fieller is what the intervals of a ratio at any confidence are made of.
type fieller struct {
	q             Quotient // without an interval
	mean          float64  // of y
	see, sey, syy float64
	x, y          []float64
}

// fiellerOf works it out once, which rules and simulations need a million times.
func fiellerOf(x, y []float64) fieller {
	q, mx, my := quotient(x, y)
	f := fieller{q: q, mean: my, x: x, y: y}
	if math.IsNaN(q.Value) || q.N < 2 {
		return f
	}
	for i := range x {
		e := (x[i] - mx) - q.Value*(y[i]-my)
		f.see += e * e
		f.sey += e * (y[i] - my)
		f.syy += (y[i] - my) * (y[i] - my)
	}
	return f
}

// at is the ratio with its interval at Student's t.
func (f fieller) at(t float64) Quotient {
	if math.IsNaN(f.q.Value) || f.q.N < 2 {
		return f.q
	}
	// With R = Value + s, the residuals are e_i − s·(y_i − my), e_i = x_i − Value·y_i, and their mean is −s·my. The
	// condition s²my² ≤ t²/n · (See − 2s·Sey + s²·Syy) is a·s² − 2b·s + c ≤ 0. This form keeps its digits where noise
	// is tiny compared with the mean, and its discriminant cannot be negative where a > 0, because c ≤ 0.
	k := t * t / float64(f.q.N) / float64(f.q.N-1)
	return f.q.ended(f.mean*f.mean-k*f.syy, -k*f.sey, -k*f.see, f.x, f.y)
}

// quotient is that of the means, and these; without an interval, and without a value where there is none.
func quotient(x, y []float64) (q Quotient, mx, my float64) {
	q = NoRatio
	if q.N = min(len(x), len(y)); q.N == 0 {
		return q, mx, my
	}
	mx, my = mean(x), mean(y)
	if my != 0 && !math.IsNaN(mx/my) {
		q.Value = mx / my
	}
	return q, mx, my
}

// ended is the quotient of x and y with the ends of Fieller's set: those Value + s for which a·s² − 2b·s + c ≤ 0, c ≤ 0.
func (q Quotient) ended(a, b, c float64, x, y []float64) Quotient {
	if !(a > 0) {
		q.Low, q.High = math.Inf(-1), math.Inf(1)
		return q
	}
	root := math.Sqrt(b*b - a*c)
	q.Low, q.High = q.Value+(b-root)/a, q.Value+(b+root)/a
	if q.Low < 0 && slices.Min(x) >= 0 && slices.Min(y) >= 0 {
		q.Low = 0 // of quantities that are never negative no ratio is
	}
	return q
}

// Robust is about what Ratio is, even if a few values are disturbed by any amount: of the logarithms of x[i]/y[i] the median of
// the means of any two, one with itself too (Hodges and Lehmann, "Estimates of location based on rank tests", 1963). It takes disturbances of up
// to 29 % of the rounds. Where the noise is skewed the two differ for that reason too. NaN without a round, and where a value is not positive.
func Robust(x, y []float64) float64 {
	logs := make([]float64, len(x))
	for i := range x {
		if logs[i] = math.Log(x[i] / y[i]); !(x[i] > 0) || !Finite(logs[i]) {
			return math.NaN()
		}
	}
	if len(logs) == 0 {
		return math.NaN()
	}
	slices.Sort(logs)
	n := len(logs) * (len(logs) + 1) / 2
	return math.Exp((pairMean(logs, (n+1)/2) + pairMean(logs, n/2+1)) / 2)
}

// pairMean is the k-th smallest of the means of any two of the sorted values, one with itself too, found by bisection: they are too many
// to be made.
func pairMean(sorted []float64, k int) float64 {
	return sorted[0] + bisect(sorted[len(sorted)-1]-sorted[0], func(beyond float64) bool {
		count, j := 0, len(sorted)-1
		for i, v := range sorted {
			for j >= 0 && (v-sorted[0])+(sorted[j]-sorted[0]) > 2*beyond {
				j--
			}
			count += max(0, j-i+1)
		}
		return count >= k
	})
}

// bisect is the smallest number from 0 to high, as precise as a number near high can be, for which enough holds; it holds for high.
func bisect(high float64, enough func(float64) bool) float64 {
	low := 0.0
	if enough(low) {
		return low
	}
	for range 60 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// Change is the mean of x over the mean of y, of values that were not measured in pairs, with its interval: Fieller's with the
// degrees of freedom of Welch and Satterthwaite. A sample of one value has none.
func Change(x, y []float64, c Confidence) Quotient {
	q, mx, my := quotient(x, y)
	if math.IsNaN(q.Value) || q.N < 2 {
		return q
	}
	wy := scatter(y, my)
	vx, vy := scatter(x, mx), q.Value*q.Value*wy // both in units of x
	at := func(c Confidence) Quotient {
		t := 0.0
		if vx+vy > 0 {
			free := (vx + vy) * (vx + vy) / (vx*vx/float64(len(x)-1) + vy*vy/float64(len(y)-1))
			t = c.student(free, len(x)+len(y))
		}
		// With R = Value + s, s²my² ≤ t²·(vx + vy·(R/Value)²), as in Ratio.
		k := t * t
		return q.ended(my*my-k*wy, k*q.Value*wy, -k*(vx+vy), x, y)
	}
	return at(c).bounded(at(c.OneSided()))
}

// Pairs are the values of two treatments in the same rounds, X over Y.
type Pairs struct{ X, Y []float64 }

// Relative is the ratio of means of one study over that of another, with its interval: the pairs within a study cancel what slows a whole
// round, and what one study's host did need not be what the other's did. The interval is made of the logarithms of the two ratios, with the
// degrees of freedom of Welch and Satterthwaite. A study of one pair has none, and a mean that is not positive no value.
func Relative(x, y Pairs, c Confidence) Quotient {
	q := NoRatio
	q.N = min(len(x.X), len(y.X))
	change, vx := x.log()
	before, vy := y.log()
	if change -= before; !Finite(change) {
		return q
	}
	if q.Value = math.Exp(change); q.N < 2 {
		return q
	}
	half := func(c Confidence) float64 {
		v := vx + vy
		if !(v > 0) {
			return 0
		}
		free := v * v / (vx*vx/float64(len(x.X)-1) + vy*vy/float64(len(y.X)-1))
		free = min(free, 2*float64(q.N-1)) // a few pairs that are alike by luck leave all of it to the others
		return c.student(free, len(x.X)+len(y.X)) * math.Sqrt(v)
	}
	both, one := half(c), half(c.OneSided())
	q.Low, q.High = q.Value*math.Exp(-both), q.Value*math.Exp(both)
	q.AtLeast, q.AtMost = q.Value*math.Exp(-one), q.Value*math.Exp(one)
	return q
}

// log is the logarithm of the ratio of the pairs' means, and its variance; NaN where a mean is not positive.
func (p Pairs) log() (log, variance float64) {
	if len(p.X) != len(p.Y) {
		panic("stats.Relative: x and y are not pairs")
	}
	mx, my := mean(p.X), mean(p.Y)
	if !(mx > 0) || !(my > 0) {
		return math.NaN(), math.NaN()
	}
	rest := make([]float64, len(p.X))
	for i := range rest {
		rest[i] = p.X[i]/mx - p.Y[i]/my
	}
	return math.Log(mx / my), scatter(rest, 0)
}

// Width is half the interval of the mean of n such values: Student's t, with their standard deviation.
func Width(values []float64, n int, c Confidence) float64 {
	deviation := math.Sqrt(scatter(values, mean(values)) * float64(len(values)))
	return c.critical(n) * deviation / math.Sqrt(float64(n))
}

// VarianceOfMean is the variance of the mean of at least two values.
func VarianceOfMean(values []float64) float64 { return scatter(values, mean(values)) }

// scatter is the variance of the values' mean.
func scatter(values []float64, mean float64) (v float64) {
	for _, x := range values {
		v += (x - mean) * (x - mean)
	}
	return v / float64(len(values)-1) / float64(len(values))
}

// Sum adds up the values of one treatment's trials in one round.
type Sum struct {
	Of float64
	N  int // values
}

// Add adds a value.
func (s *Sum) Add(v float64) { s.Of, s.N = s.Of+v, s.N+1 }

// Mean is the round's value: NaN without a trial.
func (s Sum) Mean() float64 { return s.Of / float64(s.N) }

// Pooled are the values, by round, of arms that do the same in guests of their own, as bare metal and its A/A control do: the mean of the
// arms' means, or the mean of the one that has a value. A guest counts once, however many trials it did, as it does everywhere: trials of
// one guest resemble each other.
func Pooled[R comparable](arms ...map[R]Sum) map[R]Sum {
	pooled := map[R]Sum{}
	for _, arm := range arms {
		for r, sum := range arm {
			if sum.N > 0 {
				all := pooled[r]
				all.Add(sum.Mean())
				pooled[r] = all
			}
		}
	}
	return pooled
}

// Paired gives the values of those rounds that both treatments have, in the order of the rounds. It is what a ratio is
// made of, wherever one is made: by the rule that stops a study and by the summary that reports it.
func Paired[R comparable](rounds []R, x, y map[R]Sum) (xs, ys []float64, both []R) {
	for _, r := range rounds {
		if a, b := x[r], y[r]; a.N > 0 && b.N > 0 {
			xs, ys, both = append(xs, a.Mean()), append(ys, b.Mean()), append(both, r)
		}
	}
	return xs, ys, both
}

// Verdict is what a ratio says of a difference, against a margin below which a difference does not matter.
type Verdict string

// Verdicts. The ratio is a cost: above 1 is worse.
const (
	Slower       Verdict = "slower"     // by the margin at least
	Faster       Verdict = "faster"     // by the margin at least
	Equivalent   Verdict = "equivalent" // any difference is smaller than the margin
	Inconclusive Verdict = "inconclusive"
)

// Margin is how small a difference does not matter, where nobody says otherwise.
const Margin = 0.01

// Verdict is decided by the one-sided bounds, each at Alpha: of slower and equivalent, and of equivalent and faster, one is wrong at any truth, and
// only one bound can err (two one-sided tests: Schuirmann, 1987). Where the margin is small compared with the interval, slower and faster can both be
// wrong. So the interval must exclude 1 too, and nothing that makes no difference is called different more often than Alpha.
func (q Quotient) Verdict(margin float64) Verdict {
	atLeast, atMost := q.Bounds()
	switch {
	case atLeast >= 1+margin && q.Low > 1:
		return Slower
	case atMost <= 1/(1+margin) && q.High < 1:
		return Faster
	case atLeast > 1/(1+margin) && atMost < 1+margin:
		return Equivalent
	}
	return Inconclusive
}

// Decided is the smallest margin for which the bounds show that the ratio is equivalent: it is for any larger one. +Inf where there is none.
func (q Quotient) Decided() float64 {
	atLeast, atMost := q.Bounds()
	if m := max(atMost, 1/atLeast) - 1; atLeast > 0 && !math.IsNaN(m) {
		return m
	}
	return math.Inf(1)
}

// MostRounds bounds what is foreseen: nobody runs more.
const MostRounds = 1000

// Rounds is about how many rounds in all would give a verdict, if the ratio stayed what it is and its values as scattered; 0 where that is
// more than a thousand, or cannot be foreseen. The odds are even, for the ratio does not stay what it is; twice as many more are likely to be
// enough ([Likely]). The interval was made at the confidence made, and that of all rounds is made at to.
func (q Quotient) Rounds(margin float64, made, to Confidence) int {
	if !q.HasInterval() || !(q.Low > 0) {
		return 0
	}
	to.Precision = 0
	error := math.Log(q.High/q.Low) / 2 / made.made(q)
	off, nearer := math.Abs(math.Log(q.Value)), math.Log1p(margin) // the nearer end of the margin
	enough := foresee(q.N, error, math.Abs(off-nearer), to.OneSided())
	if off > nearer && enough > 0 { // the interval excludes 1 too
		if also := foresee(q.N, error, off, to); also == 0 || also > enough {
			return also
		}
	}
	return enough
}

// Likely is how many rounds more are likely to be enough, where so many more are as likely as not: TestExtensions shows how likely.
func Likely(even int) int { return 2 * even }

// PreciseRounds is the same of an interval that is to lie within ± precision.
func (q Quotient) PreciseRounds(precision float64, c Confidence) int {
	if !q.HasInterval() {
		return 0
	}
	to := c
	if c.Precision > 0 {
		to = c.Last()
	}
	return foresee(q.N, max(q.High-q.Value, q.Value-q.Low)/c.made(q), precision*math.Abs(q.Value), to)
}

// Foresee estimates how many values in all would make half an interval as narrow as narrow at confidence c. Now n values make it half wide, at the
// confidence made. The estimate assumes that the scatter stays the same. It is 0 where it would be more than [MostRounds].
func Foresee(n int, half float64, made Confidence, narrow float64, c Confidence) int {
	return foresee(n, half/made.critical(n), narrow, c)
}

// foresee is Foresee where the mean of n values has that standard error.
func foresee(n int, error float64, narrow float64, c Confidence) int {
	enough := func(of int) bool {
		return error*math.Sqrt(float64(n))*c.critical(of) <= narrow*math.Sqrt(float64(of))
	}
	if n >= MostRounds || !enough(MostRounds) {
		return 0
	}
	return n + 1 + sort.Search(MostRounds-n-1, func(i int) bool { return enough(n + 1 + i) })
}

// Precise says whether a ratio's interval lies within ± precision, as a share of the ratio. Never, where there is no
// interval.
func Precise(q Quotient, precision float64) bool {
	return max(q.High-q.Value, q.Value-q.Low) <= precision*math.Abs(q.Value)
}

// Median is the middle of the values, the mean of the two middle ones where their number is even; NaN of none. The
// values are left as they are.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return s[m-1] + (s[m]-s[m-1])/2
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	m := sum / float64(len(values))
	// One correction makes the mean of equal values that value exactly, and so their spread exactly zero.
	var rest float64
	for _, v := range values {
		rest += v - m
	}
	return m + rest/float64(len(values))
}

// Finite says whether f is a number: neither NaN nor infinite.
func Finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
