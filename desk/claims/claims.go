// Package claims holds published findings against what was measured here. A [Claim] is a finding as a hypothesis about
// ratios of treatments; [Judge] gives each one a [Verdict], with the evidence that it rests on.
//
// A verdict is never a guess. "holds here" and "does not hold here" both need intervals that leave no other answer, at
// a level corrected for all the comparisons of all the claims that were asked together; where the intervals are too
// wide the verdict is "not decided", and where the treatments were not measured, or must not be ranked, it is "not
// testable here", with the reason. Every claim gets a verdict.
package claims

// Claim is a published finding.
type Claim struct {
	Study      string     // the file that it comes from: "pinning"
	Paper      string     // its title
	Group      string     // the part of the paper: "FFmpeg (section III-B1)"
	ID         string     // unique in the file: "ffmpeg-i-a"
	Place      string     // where the paper says it: "III-B1 (i), Figure 3"
	Finding    string     // what it says, in our words
	Published  *Published // the paper's own number, where there is one
	Tolerance  string     // why the hypothesis' bounds are where they are
	PaperCHR   float64    // of the paper's containers, where the finding is about small ones and names no CHR; else 0
	Without    []Exclusion
	Hypothesis Hypothesis
}

// Exclusion is what a paper leaves out of its findings, and why: it has no part in a verdict.
type Exclusion struct {
	Selector `yaml:",inline"`
	Why      string `yaml:"why"`
}

// Published is a number, or a range, that the paper prints.
type Published struct {
	What      string  // "ratio to a vanilla VM", "suitable CHR"
	Low, High float64 // equal where it is one number
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
	Why      string     // the answer's reason in a line: the evidence in brief, how many rounds would do, what is missing
	Evidence []Evidence // every comparison that was made, in the order of the hypothesis
	Missing  []string   // comparisons that could not be made, and why; each reason once
	Needs    []string   // the treatments that the hypothesis is about, in words

	gaps   []gap // Missing, in parts
	tested bool  // at least one comparison was there to be made: it counts in the correction
}

// Evidence is one comparison of a claim.
type Evidence struct {
	What       string     // in words: "cn docker vanilla / bm, ffmpeg at large"
	Treatments [][]string // ids: of the rows compared, over below; two pairs where a ratio is held against a ratio
	Ratio      float64    // NaN where unknown
	Low, High  float64    // NaN or ±Inf where unknown
	Level      float64    // of that interval, as a share: 1 − the share of Alpha that this comparison got
	Rounds     int        // that count, of the pair that has fewer
	Wanted     string     // "at least 1.02"
	Met        Met        // whether the interval lies where the hypothesis wants it
}

// Met says where an interval lies.
type Met string

const (
	Yes  Met = "yes"  // within the hypothesis' bounds
	No   Met = "no"   // outside
	Open Met = "open" // across a bound, or without one
)
