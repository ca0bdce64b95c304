package advise

import (
	"strings"
	"testing"
)

// Where bare metal differs from itself by 15 %, two containers that are both far from it are not told apart by 8 %.
func TestAnUnsteadyHostTellsLessApart(t *testing.T) {
	for _, c := range []struct {
		again float64
		tied  bool
	}{{4, false}, {4.6, true}} {
		l := newLab(8)
		l.add("bm", large, 4).add("aa", large, c.again).add("cn/docker/vanilla", large, 6).add("cn/docker/pinned", large, 6.5)
		a := read(t, Options{Exclude: []string{"bm"}}, l.write(t))
		r := a.Rankings[0]
		if len(r.Choices) != 2 || r.Choices[1].Tied != c.tied {
			t.Fatalf("%+v", r.Choices)
		}
		if out := text(t, a); strings.Contains(out, "the A/A check excludes 1 at large") != c.tied || strings.Contains(out, "is not distinguishable from it: ") != c.tied {
			t.Error(out)
		}
	}
}
