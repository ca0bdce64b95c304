// Package claims tests published findings against what was measured here. A [Claim] is a finding as a hypothesis about
// what was measured of treatments; [Judge] gives each one a [Verdict], with the evidence that it rests on.
//
// A verdict is never a guess. "holds here" and "does not hold here" both need intervals that leave no other answer, at
// a level corrected for all the comparisons of all the claims that were asked together; where the intervals are too
// wide the verdict is "not decided", and where the treatments were not measured, or must not be ranked, it is "not
// testable here", with the reason. Every claim gets a verdict.
package claims

import (
	"slices"

	"tare/desk/data"
	"tare/notebook"
)

// Claim is a published finding.
type Claim struct {
	Study       string      `yaml:"-" json:"study"`                               // the file that it comes from: "pinning"
	Paper       string      `yaml:"-" json:"paper"`                               // its title
	Group       string      `yaml:"-" json:"group"`                               // the part of the paper: "FFmpeg (section III-B1)"
	ID          string      `yaml:"id" json:"id" jsonschema:"required"`           // unique in the file: "ffmpeg-i-a"
	Place       string      `yaml:"place" json:"place" jsonschema:"required"`     // where the paper says it: "III-B1 (i), Figure 3"
	Finding     string      `yaml:"finding" json:"finding" jsonschema:"required"` // the finding, in our own words
	Published   *Published  `yaml:"published,omitempty" json:"published"`         // the paper's own number, if it has one
	Tolerance   string      `yaml:"tolerance,omitempty" json:"tolerance"`         // why the hypothesis' bounds are where they are
	PaperCHR    float64     `yaml:"paper_chr,omitempty" json:"-"`                 // CHR of the paper's containers, if the finding is about small ones and names no CHR; otherwise 0
	ExcludedToo bool        `yaml:"excluded_too" json:"-"`                        // also judge the claim on what the paper excludes
	Without     []Exclusion `yaml:"-" json:"-"`
	Otherwise   []Claim     `yaml:"-" json:"-"` // the same claim about other kinds of VM, for folders without this kind; the first with the fewest missing comparisons is judged
	Hypothesis  Hypothesis  `yaml:"hypothesis" json:"-" jsonschema:"required"`
}

// Exclusion is what a paper excludes from its findings, and why. Verdicts do not use it.
type Exclusion struct {
	Selector `yaml:",inline"`
	Why      string `yaml:"why" jsonschema:"required"`
}

// Published is a number, or a range, that the paper prints.
type Published struct {
	What  string  `yaml:"what" json:"what" jsonschema:"required"` // "ratio to a vanilla VM", "suitable CHR"
	Value float64 `yaml:"value,omitempty" json:"-"`               // if it is one number; 0: it is a range
	Low   float64 `yaml:"from,omitempty" json:"low"`
	High  float64 `yaml:"to,omitempty" json:"high"` // the end of a range; for one number, Low and High become Value
}

// Answer to a claim.
type Answer string

const (
	Holds       Answer = "holds here"
	DoesNotHold Answer = "does not hold here"
	NotDecided  Answer = "not decided"
	NotTestable Answer = "not testable here"
)

// Verdict is what the measurements say of one claim.
type Verdict struct {
	Claim    Claim
	Answer   Answer
	Evidence []Evidence // every comparison that was made, in the order of the hypothesis
	Missing  []Gap      // comparisons that could not be made, and why; each once
	Needs    []Selector // the treatments that the hypothesis is about

	// Deciding is the comparison that the answer rests on (an index in Evidence): of those that show it the one nearest to a
	// bound, of those that refute it the farthest beyond one, and where nothing is decided the one that needs most rounds.
	// −1: there is none. Alike is how many comparisons are as it is.
	Deciding, Alike int
	More            int                  // about how many more rounds would decide it, for NotTestable only one way; 0: more than [stats.MostRounds] in all, or not foreseeable
	Waits           []notebook.Treatment // whose rounds those are

	// CHRLow and CHRHigh are those of the containers in Evidence; 0 where there are none.
	CHRLow, CHRHigh float64

	Tested bool // at least one comparison could be made, so it counts in the correction
}

// Concerns says whether the claim is about something that the folders' studies have, measured or not.
func (v *Verdict) Concerns() bool {
	return v.Tested || len(v.Evidence) > 0 || slices.ContainsFunc(v.Missing, func(g Gap) bool {
		switch g.Reason.(type) {
		case NotStudied, NotTogether, NeedsTwo, NeedsHostCores, Unrecorded:
			return g.LeftOut != nil
		}
		return true
	})
}

// Gap is a comparison that cannot be made, and why.
type Gap struct {
	LeftOut *notebook.Treatment // the study left it out; nil: the reason says all
	Reason  data.Doubt
}

// Term is a treatment's value, or the ratio or the difference of two treatments.
type Term struct {
	By     By                 // not empty
	Of, To notebook.Treatment // To is zero where it is a value
	At     Place
}

// Place is where a treatment was measured, as far as there is more than one.
type Place struct {
	Workload  string
	Params    map[string]string
	Instance  string
	HostCores int    // of a host made smaller; else 0
	Host      string // empty: the claim is about one host
}

// Comparison is a term, or a term over the same of other treatments.
type Comparison struct {
	What   data.Quantity
	Over   Term
	Below  *Term          // nil: the comparison is of Over only
	Whole  *data.Quantity // what Below is of; nil: of What, too
	Failed []Failed
	Unlike []data.HostTrait // if Over and Below are of two hosts: how these differ in addition to their cores
}

// AcrossHosts says whether a term on one host is compared with one on another.
func (c Comparison) AcrossHosts() bool { return c.Below != nil && c.Below.At.Host != c.Over.At.Host }

// Failed is a treatment of a comparison with failed trials.
type Failed struct {
	Treatment      notebook.Treatment
	Failed, Trials int
}

// Evidence is one comparison of a claim.
type Evidence struct {
	Comparison Comparison
	Emulated   bool    // the VM was emulated: it is of the guest's own memory, which does not depend on the accelerator
	Estimate   float64 // what the comparison comes to; NaN where unknown
	Unit       string  // of it; empty: a ratio, a share or a count
	Low, High  float64 // NaN or ±Inf where unknown
	Level      float64 // of that interval, as a share; an interval that misses only at one end may miss there as often as others at both
	Rounds     int     // that count, of the pair that has fewer
	Wanted     Region
	Met        Met // whether the interval lies where the hypothesis wants it
}

// Met says where an interval lies.
type Met string

const (
	Yes  Met = "yes"  // within the hypothesis' bounds
	No   Met = "no"   // outside
	Open Met = "open" // across a bound, or without one
)

// Answers are all there are, in the order in which they are counted.
var Answers = []Answer{Holds, DoesNotHold, NotDecided, NotTestable}

// Reasons why a comparison cannot be made, in addition to those of package data.
type (
	// OnlyEmulated: the platform was only emulated.
	OnlyEmulated struct{ Platform string }
	// Unmeasured: the treatment was not measured yet.
	Unmeasured struct{ Treatment notebook.Treatment }
	// EveryTrialFailed: every trial of the treatment failed.
	EveryTrialFailed struct{ Treatment notebook.Treatment }
	// WithinUnsteadiness: bare metal differed from itself by as much as the treatment differs from it.
	WithinUnsteadiness struct{ Treatment notebook.Treatment }
	// Unsteady: bare metal differed from itself by up to this factor.
	Unsteady struct {
		Factor float64
		At     Place
	}
	// NeedsHostCores: no host has so many cores.
	NeedsHostCores struct {
		Range Range
		Here  []int
	}
	// NeedsCHR: none of the treatments has such a CHR.
	NeedsCHR struct {
		Of    Selector
		Range Range
		Here  []float64
	}
	// PaperLeavesOut: the treatments were measured only where the paper leaves them out.
	PaperLeavesOut struct {
		Of  Selector
		Why string
	}
	// NeedsSize: the treatments were measured at other instance types.
	NeedsSize struct {
		Of   Selector
		Here []string
	}
	// NotStudied: the treatments are in none of the studies.
	NotStudied struct{ Of Selector }
	// NotTogether: no study has these on one host, at one size and otherwise alike.
	NotTogether struct{ Of []Selector }
	// NeedsTwo: a trend needs two places on its axis; Here is the only one. Over hosts, Cores are those of the treatment, and CPU is the model of the
	// only host.
	NeedsTwo struct {
		Of    Selector
		Over  string
		Here  string
		Cores float64
		CPU   string
	}
	// UnlikeHosts: hosts have different core counts, but also different CPU models or (Images) ran different images.
	UnlikeHosts struct {
		Of     Selector
		Hosts  []UnlikeHost
		Images bool
	}
	// UnlikeHost is one of them.
	UnlikeHost struct {
		Cores int
		CPU   string
	}
	// NoValue: the treatment has no value of what is compared.
	NoValue struct {
		Treatment notebook.Treatment
		Why       data.Doubt
	}
	// LowerBound: what is recorded of the quantity is less than there is, which refutes nothing here.
	LowerBound struct{ What data.Quantity }
	// Unrecorded: nothing that Tare records tests it.
	Unrecorded struct{ Why string }
	// NoCommonRound: no round has all treatments of a comparison.
	NoCommonRound struct{ Of Comparison }
)

func (OnlyEmulated) Doubt()       {}
func (Unmeasured) Doubt()         {}
func (EveryTrialFailed) Doubt()   {}
func (WithinUnsteadiness) Doubt() {}
func (Unsteady) Doubt()           {}
func (NeedsHostCores) Doubt()     {}
func (NeedsCHR) Doubt()           {}
func (PaperLeavesOut) Doubt()     {}
func (NeedsSize) Doubt()          {}
func (NotStudied) Doubt()         {}
func (NotTogether) Doubt()        {}
func (NeedsTwo) Doubt()           {}
func (UnlikeHosts) Doubt()        {}
func (NoValue) Doubt()            {}
func (LowerBound) Doubt()         {}
func (Unrecorded) Doubt()         {}
func (NoCommonRound) Doubt()      {}
