package words

import (
	"slices"

	"tare/desk/data"
	"tare/stats"
)

// Speaker is the config of a row whose kind of study has words of its own.
type Speaker interface{ Phrases() Phrases }

// Phrases are a kind of study's words for its rows. Where one is empty, the words for timed work apply.
type Phrases struct {
	// Where follows what an answer or a report's table is of: ", 8 guests at once". Head follows the head of a table in a terminal.
	Where, Head func(*data.Summary, *data.Row) string
	// Baseline names bare metal where rows are compared with it.
	Baseline string
	// Verb says what a row does with what it measures, and Of what that is: "takes", " memory". Times follows a factor: " times the memory".
	Verb      string
	Of, Times func(*data.Row) string
	// More and Less say of one treatment, and of several, that another folder's have changed: "takes more memory", "take more memory".
	More, Less [2]string
	// Ratio is what a ratio of so much more means, %s; and Better what a row is that has a smaller one: "lighter".
	Ratio, Better string
	// Terms are the kind's own in a report's list of words.
	Terms []Term
	// Run is what one run is called: "search".
	Run string
	// Open reports whether a run with more time may decide what a row's finding leaves open.
	Open func(*data.Row) bool
	// Amount replaces the mean of a row that is compared with nothing.
	Amount func(r *data.Row, mean string) string
	// Rate describes rows whose metric is the time for one item, such as a request.
	Rate *Rate
	// Answer is the finding at a place, in sentences. It replaces one sentence for each environment. nil: there is none.
	Answer func(Ranked) []string
	// Finding is the finding at a place, in sentences, where nothing needs to be compared; nil: there is none.
	Finding func(Unranked) []string
}

// Unranked is what a finding is given of.
type Unranked struct {
	Work  string // "CPU-bound work"
	Host  string // "this host"
	Rows  []*data.Row
	Named func(*data.Row) string
}

// Rate says one over a metric, such as the requests a second of a service.
type Rate struct {
	Name func(*data.Row) string         // "requests a second at p99 ≤ 50 ms"
	Of   func(*data.Row) stats.Estimate // the mean over rounds; NaN where it is not known
}

// Term is a word with what it means.
type Term struct{ Name, Text string }

// Ranked is what an answer is given of.
type Ranked struct {
	Work  string      // "this service"
	Rows  []*data.Row // what can be ranked
	Base  *data.Row   // the baseline; nil: it was not measured here
	To    string      // what names it
	Named func(*data.Row) string
}

// phrases are those of a row's kind.
func phrases(r *data.Row) Phrases {
	if s, speaks := r.Config.(Speaker); speaks {
		return s.Phrases()
	}
	return Phrases{}
}

// Amount is what a row has: its mean with the unit, or what its kind says in its place.
func Amount(r *data.Row) string {
	return amountOr(r, Mean(r))
}

// Mean is a row's mean with its interval and unit.
func Mean(r *data.Row) string {
	return Measured(r.Mean, data.Floor(r.Metric, r.MeanLow), r.MeanHigh, r.Metric.Unit)
}

// amountOr is what a row's kind says in place of the mean, else the mean.
func amountOr(r *data.Row, mean string) string {
	if of := phrases(r).Amount; of != nil {
		return of(r, mean)
	}
	return mean
}

// rateOf is the rate of a row whose own metric is a time for one of something; nil for all others, and for a row's other metrics.
func rateOf(r *data.Row) *Rate {
	if r.Of == nil {
		return nil
	}
	return phrases(r).Rate
}

// HasRate reports whether a row's amount is one over its metric, so that a figure of the metric must name it.
func HasRate(r *data.Row) bool { return rateOf(r) != nil }

// HasTables reports whether the answer's tables say what was measured. A kind of study that does more than time work has its own tables,
// unless it measures a rate.
func HasTables(s *data.Summary) bool {
	return !slices.ContainsFunc(s.Rows, untabled)
}

// untabled reports whether the answer's tables have no place for a row.
func untabled(r *data.Row) bool { return r.Kind != "" && phrases(r).Rate == nil }

// WantsDetails reports whether an answer needs the details of every row: some have a kind of study that neither the tables nor a finding say.
func WantsDetails(s *data.Summary) bool {
	return slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return untabled(r) && (phrases(r).Finding == nil || r.Unreliable()) })
}

// AmountChange is the ratio of a row's amount to its baseline's.
func AmountChange(r *data.Row) stats.Quotient {
	if rateOf(r) != nil {
		return r.Quotient().Inverse()
	}
	return r.Quotient()
}

// measuring follows what a row's table or answer is of, as its kind has it.
func measuring(s *data.Summary, r *data.Row) string {
	if of := phrases(r).Where; of != nil {
		return of(s, r)
	}
	return ""
}

// Head follows the head of a row's table in a terminal, as its kind has it.
func Head(s *data.Summary, r *data.Row) string {
	if of := phrases(r).Head; of != nil {
		return of(s, r)
	}
	return ""
}

// Ratios says what a ratio of so much more, %s, means of what was measured, each once, and timed work first; what a row is that has a smaller
// one; and the terms of the kinds of study.
func Ratios(s *data.Summary) (means []string, lesser string, terms []Term) {
	timed := false
	for _, r := range s.Rows {
		of := phrases(r)
		if of.Ratio == "" {
			timed = true
		} else if !slices.Contains(means, of.Ratio) {
			means, lesser, terms = append(means, of.Ratio), of.Better, append(terms, of.Terms...)
		}
	}
	if timed || means == nil {
		return append([]string{"the work takes %s longer"}, means...), "faster", terms
	}
	return means, lesser, terms
}
