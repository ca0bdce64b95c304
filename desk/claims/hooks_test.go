package claims

import (
	"io"

	"tare/notebook"
)

// What the tests of this package say in words is set by words_test.go: packages that import this one cannot be imported
// from here.
var (
	Why      func(Verdict) string
	Named    func(notebook.Treatment) string
	Compared func(Evidence) string
	Table    func(io.Writer, []Verdict, int) error
	JSON     func(io.Writer, []Verdict) error
	Reasons  func([]Verdict) (reasons []Said, notes []string)
)

// Said is why a verdict is as it is, and what is missing.
type Said struct{ Why, Missing []Piece }

// Piece is a part of it, and the number of its note.
type Piece struct {
	Text string
	Note int
}

func (e Evidence) terms() []Term {
	if e.Comparison.Below == nil {
		return []Term{e.Comparison.Over}
	}
	return []Term{e.Comparison.Over, *e.Comparison.Below}
}
