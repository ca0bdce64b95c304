package model

// Range is a range of CHR.
type Range struct{ Low, High float64 }

// PaperCHR are the ranges in which a container's CHR should be, by workload: section IV-A of the paper "pinning". It
// has none for MPI.
var PaperCHR = map[string]Range{
	"ffmpeg":    {0.07, 0.14},
	"wordpress": {0.14, 0.28},
	"cassandra": {0.28, 0.57},
}

// Verdict is whether a suitable CHR was found.
type Verdict string

const (
	Found      Verdict = "found"       // Low and High are known: the smallest suitable CHR is between them
	NotReached Verdict = "not reached" // even the largest CHR measured has more overhead than is borne
	NotDecided Verdict = "not decided" // the largest CHR is neither shown to be suitable nor excluded
	NoAnswer   Verdict = "no answer"   // nothing was measured, or nothing was fitted
)

// Suitable is the smallest CHR from which the overhead stays under the tolerance, among the sizes measured, for this
// and every larger one.
type Suitable struct {
	Verdict   Verdict
	Low       float64 // the smallest CHR that is not excluded; NaN where NotReached or NoAnswer
	High      float64 // the smallest CHR that is shown; NaN where none is
	OrLess    bool    // Low is the smallest CHR measured: it may well be less
	HostCores int     // by the fit: of the host that it is worked out for; 0 by the rows
	Fitted    bool    // by the fit, not by the rows
}

// String says it in words.
func (s Suitable) String() string { return string(s.Verdict) }
