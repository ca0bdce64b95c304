package claims

import (
	"testing"

	"tare/desk/data"
	"tare/notebook/notebooktest"
)

// A claim's bounds are about the ratio as papers print it, whichever values are better.
func TestBoundsAreOfTheRatio(t *testing.T) {
	s, err := data.Read([]string{notebooktest.Stream().Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const of = "of: {workload: stream, platform: cn, provisioning: vanilla}"
	for hypothesis, want := range map[string]Answer{
		"ratio: {" + of + ", lower: 10%}":                             Holds,
		"ratio: {" + of + ", higher: 10%}":                            DoesNotHold,
		"ratio: {" + of + ", between: [0.82, 0.86]}":                  Holds,
		"ratio: {" + of + ", metric: secondary.latency, higher: 10%}": Holds,
		"ratio: {of: {workload: stream, platform: vm}, metric: secondary.triad bandwidth, between: [0.78, 0.82]}": Holds,
	} {
		if v := judgeOne(t, s, hypothesis); v.Answer != want {
			t.Errorf("%s: %s, want %s", hypothesis, v.Answer, want)
		}
	}
}
