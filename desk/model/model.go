// Package model tells the two overheads of the paper "pinning" (section IV) apart: what a platform costs at any size,
// and what it costs because it is small compared with its host. It is a pure function of a summary. docs/model.md derives
// the form and says what it cannot tell.
//
//	R(c, H) = 1 + PTO + κ·(H − c)/c + δ/c
//
// R is the overhead ratio, c the instance's cores, H the host's; c/H is CHR, and (H − c)/c is 1/CHR − 1. PTO is the
// platform-type overhead, the two other terms are the platform-size overhead (PSO). On hosts of one core count the two
// cannot be told apart: the fit is then 1 + PTO + κ·(H − c)/c, and κ speaks for both.
package model

import (
	"tare/desk/data"
	"tare/notebook"
)

const (
	defaultTolerance = 0.10 // of overhead, where a suitable CHR is looked for
	leastSizes       = 3    // distinct CHR: two points lie on every line
	leastToSeparate  = 5    // distinct sizes for three parameters and a misfit
)

// Options say how to fit.
type Options struct {
	Tolerance float64 // overhead that is borne when a suitable CHR is looked for; 0 means 0.10
	Alpha     float64 // share of intervals that may miss; 0 means stats.Alpha, 95 % intervals
}

// Model is what the summary's rows say about size.
type Model struct {
	Tolerance float64
	Alpha     float64
	Overheads []*Overhead // one a group, in the order of the rows
}

// Group is what one fit is about: all sizes and hosts of one platform at one work.
type Group struct {
	notebook.Treatment // without what differs among those: its ID, instance type, and the host's cores and rounds
	Metric             notebook.Metric
}

// Overhead is the model of one group, or the reason why there is none. Numbers that are not known are NaN.
type Overhead struct {
	Group  Group
	Cannot data.Doubt // why PTO and PSO cannot be separated; nil: they were fitted

	Points  []Point      // rows that count, by CHR
	Across  []Across     // each size on hosts of several core counts; empty: none was measured on two
	Skipped []data.Doubt // why each of its other rows does not

	// Separated says that hosts of several core counts told κ and δ apart. Else Fixed is unknown and PerCPU speaks for
	// both.
	Separated bool
	PTO       Param // overhead where the container is the host; where Separated, on such a host of very many cores
	PerCPU    Param // κ: cost of each CPU of the host beyond the instance's own, in cores' worth of time
	Fixed     Param // δ: cost of the platform at any size, in cores' worth of time
	PSO       Param // the size term at Smallest: what this small size adds to the ratio

	Smallest Point   // the measured point with the lowest CHR, where the largest overhead is likely
	SizeP    float64 // p-value of the test for a size term
	Size     Finding // the result of this test and of the sign of PSO
	Misfit   float64 // standard deviation of sizes from the form, in units of the ratio
	DF       int     // degrees of freedom of Misfit: points less parameters

	Left     []Left  // each size predicted from the others
	LeftRMS  float64 // root mean square of their relative errors; NaN where none
	LeftMost float64 // the largest of them in size, with its sign

	Measured  Suitable // suitable CHR by the measured rows
	Predicted Suitable // by the fit: Verdict is Unknown where there is none
	Paper     *Range   // the paper's suitable range for this workload; nil where it has none

	Doubts []data.Doubt // warnings for the reader

	Tolerance float64 // the overhead that Measured and Predicted tolerate
	alpha     float64
	form      form
	line      *line     // nil where there is no fit
	unsure    []float64 // CHR of measured rows that do not count
}

// Param is a parameter with its interval.
type Param struct{ Value, Low, High float64 }

// Finding is what the test of the size term says.
type Finding string

const (
	Falls    Finding = "falls"     // the overhead falls as the instance grows: there is a size term
	Grows    Finding = "grows"     // it grows: the opposite of what the paper found
	NotShown Finding = "not shown" // neither is shown, which does not show that there is none
	Unknown  Finding = "unknown"   // there is no fit
)

// Point is a measured row that counts in a fit.
type Point struct {
	Cores     float64
	HostCores int
	CHR       float64
	Ratio, SE float64 // as measured, and its standard error
	Low, High float64 // the row's own interval
	Fitted    float64 // NaN without a fit

	row, baseline   *data.Row
	spread, freedom float64 // of the rounds' ratios: relative variance, and the degrees it is known by
}

// Left is a size predicted from all others.
type Left struct {
	Cores     float64
	HostCores int
	Predicted float64
}

// Prediction is the ratio to be expected at a size: what many rounds there would show.
type Prediction struct {
	Ratio, Low, High float64
	Extrapolated     bool // outside of the measured sizes: the form is trusted there without evidence
	Ambiguous        bool // the data do not say whether the size term follows CHR, the cores or the host's cores: the interval spans these readings
}

// Doubts about an overhead's model and its rows, in addition to those of package data.
type (
	// TooFewSizes: so many distinct CHRs count, and more are needed to separate PTO from PSO: so many, and so many more than
	// there are. The largest of the hosts has so many CPUs.
	TooFewSizes struct {
		Overhead                       *Overhead
		CHRs, Needed, Lacking, Largest int
	}
	// NothingCounts: none of the rows counts; why the first of them does not.
	NothingCounts struct{ Why data.Doubt }
	// NotSeparable: the ratios are too far apart for numbers, or too alike in size, to separate PTO from PSO.
	NotSeparable struct{}
	// OneHostSize: every row is of a host with so many CPUs, so CHR and the core count cannot be separated.
	OneHostSize struct{ CPUs int }
	// AlikeSizes: CHR and the core count cannot be separated by these sizes; so many are needed.
	AlikeSizes struct{ Needed int }
	// SeveralHosts: so many hosts are taken to differ only in their core counts.
	SeveralHosts struct{ Hosts int }
	// SeveralImages: the rows ran so many different images.
	SeveralImages struct{ Images int }
	// OneDegree: there is one row more than parameters.
	OneDegree struct{}
	// NotFitted: so many rows of the group do not count.
	NotFitted struct{ Rows int }

	// WithinUnsteadiness: bare metal differed from itself by as much as the row differs from it.
	WithinUnsteadiness struct{}
	// NoRatio: the row has no ratio to bare metal.
	NoRatio struct{}
	// NoBounds: the row's ratio has no bounded interval.
	NoBounds struct{}
	// NoSize: the row's cores, or those of its host, are not known or contradict each other.
	NoSize struct{}
	// OtherBaseline: the row's ratio is not relative to bare metal of the same size.
	OtherBaseline struct{}
	// FewCommonRounds: fewer than two rounds have both the row and bare metal.
	FewCommonRounds struct{}
)

func (TooFewSizes) Doubt()        {}
func (NothingCounts) Doubt()      {}
func (NotSeparable) Doubt()       {}
func (OneHostSize) Doubt()        {}
func (AlikeSizes) Doubt()         {}
func (SeveralHosts) Doubt()       {}
func (SeveralImages) Doubt()      {}
func (OneDegree) Doubt()          {}
func (NotFitted) Doubt()          {}
func (WithinUnsteadiness) Doubt() {}
func (NoRatio) Doubt()            {}
func (NoBounds) Doubt()           {}
func (NoSize) Doubt()             {}
func (OtherBaseline) Doubt()      {}
func (FewCommonRounds) Doubt()    {}
