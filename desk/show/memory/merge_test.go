package memory

import (
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// A mean over two guests is not another round of a mean over eight.
func TestGuestsOfOtherNumbersDoNotMerge(t *testing.T) {
	start := notebooktest.At
	weighed := func(m *kind.Config) string {
		f := notebooktest.New(2)
		start = start.Add(time.Hour)
		f.Study.Kind, f.Study.Config, f.Start = kind.Name, m, start
		return f.Add("shell cn crun pinned large", 1).Write(t)
	}
	two := kind.Config{Guests: []int{1, 2}}
	s, err := data.Read([]string{weighed(&two), weighed(&two), weighed(&kind.Config{Guests: []int{1, 8}}), weighed(&kind.Config{Guests: []int{1, 2}, KSM: notebook.KSMPaper}), weighed(nil)}, data.Options{Kinds: []data.Kind{&Kind}})
	if err != nil {
		t.Fatal(err)
	}
	var rounds []int
	for _, r := range s.Rows {
		rounds = append(rounds, r.Rounds)
	}
	if len(rounds) != 4 || rounds[0] != 10 || rounds[1] != 5 || rounds[2] != 5 || rounds[3] != 5 {
		t.Errorf("rows of %d rounds, want 10, 5, 5 and 5", rounds)
	}
}
