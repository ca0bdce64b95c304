package advise

import (
	"io"

	"tare/desk/data"
	"tare/notebook"
)

// What the tests of this package say in words, and what they apply, is set by words_test.go: packages that import this one
// cannot be imported from here.
var (
	Named       func(notebook.Treatment, bool) string
	Why         func(Ranking) string
	Said        func(data.Doubt) string
	Text, JSON  func(io.Writer, *Advice) error
	Apply       func(w io.Writer, a *Advice, format string, pick int) error
	Expresses   func(format string, t notebook.Treatment) bool
	Formats     []string
	Placeholder string
)

func (c Choice) named() string { return Named(c.Treatment, c.Treatment.Network != "") }
func (p Apart) named() string  { return Named(p.Treatment, p.Treatment.Network != "") }

func said(doubts []data.Doubt) (all []string) {
	for _, d := range doubts {
		all = append(all, Said(d))
	}
	return all
}

func readAll(dirs []string, o Options) (*Advice, error) {
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		return nil, err
	}
	return Of(s, o)
}
