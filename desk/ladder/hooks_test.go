package ladder

import "io"

// What the tests of this package say in words is set by words_test.go: packages that import this one cannot be imported
// from here.
var (
	Sentence func(*Staircase) string
	Together func(*Rung) string
	CSV      func(io.Writer, *Staircase) error
)
