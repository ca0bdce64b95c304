package words

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/stats"
)

// The text of a check says whether chance explains it, for its own place and for all places of its host.
func TestCheck(t *testing.T) {
	for _, x := range []struct {
		a    data.AACheck
		want string
	}{
		{data.AACheck{Ratio: 1, Low: 0.99, High: 1.01, Verdict: data.Holds, Places: 1, Factor: 1}, "1.00 (0.99 to 1.01), which contains 1; this run cannot resolve differences below 1.0 %"},
		{data.AACheck{Ratio: 1.02, Low: 1.01, High: 1.03, Verdict: data.Holds, Places: 40, Factor: 1}, "1.02 (1.01 to 1.03), which excludes 1; one such interval in 20 does by chance; over 40 places, chance explains that; this run cannot resolve differences below 1.0 %"},
		{data.AACheck{Ratio: 1, Low: 0.99, High: 1.01, Verdict: data.Narrow, Places: 40, Factor: 1.6, Untrusted: []string{"a"}}, "1.00 (0.99 to 1.01), which contains 1; but over 40 places bare metal differs from itself by 1.6 times what such intervals allow; 1 treatment is not to be trusted"},
		{data.AACheck{Ratio: 1.02, Low: 1.01, High: 1.03, Verdict: data.Misses, Places: 1, Factor: 1}, "1.02 (1.01 to 1.03), which excludes 1: the host was too noisy, or this is the one run in 20 in which chance alone does it"},
		{data.AACheck{Verdict: data.NotKnown}, "not known: too few or too noisy rounds for an interval"},
		{data.AACheck{Ratio: 1.02, Low: 1.01, High: 1.03, Verdict: data.Misses, Places: 40, Factor: 1}, "1.02 (1.01 to 1.03), which excludes 1 by more than chance explains over 40 places: the host was too noisy, or this is the one run in 20 in which chance alone does it"},
	} {
		if got := Check(x.a); got != x.want {
			t.Errorf("%s: %q\nwant %q", x.a.Verdict, got, x.want)
		}
	}
}

func TestCalibrated(t *testing.T) {
	s := &data.Summary{Hosts: make([]data.Host, 2)}
	of := func(places int, factor, low float64) string {
		of, says := Calibrated(s, data.Calibration{Host: "bench", Calibration: stats.Calibration{Places: places, Factor: factor, Low: low}})
		return of + ": " + says
	}
	if got := of(2, 1, 0.7); got != ": " {
		t.Errorf("of two places %q is said", got)
	}
	if got := of(12, 1.04, 0.83); !strings.Contains(got, "on bench: over 12 places, bare metal differs from itself by 1.0 times what the intervals allow: no sign") {
		t.Errorf("%q", got)
	}
	if got := of(2, 1.84, 1.31); !strings.Contains(got, "by 1.8 times what the intervals allow: they are too narrow, by 1.3 times at least") {
		t.Errorf("%q", got)
	}
}
