package notebook

import (
	"encoding/json"
	"strings"
	"testing"
)

// A metric of which nothing is said is written as it was before there was a direction, and a folder is read that says one.
func TestWhichValuesAreBetter(t *testing.T) {
	for _, c := range []struct {
		m    Metric
		want string
	}{
		{Metric{Name: "execution time", Unit: "s"}, `{"name":"execution time","unit":"s"}`},
		{Metric{Name: "copy", Unit: "GB/s", Better: Higher}, `{"name":"copy","unit":"GB/s","better":"higher"}`},
	} {
		if b, err := json.Marshal(c.m); err != nil || string(b) != c.want {
			t.Errorf("%s, %v; want %s", b, err, c.want)
		}
	}
	const study = `{"version":1,"metrics":{"w":{"name":"copy","unit":"GB/s","better":"higher"}},"also":{"w":[{"name":"p","unit":"s","better":"BETTER"}]},"treatments":[{"id":"a","workload":"w"}]}`
	for better, want := range map[string]string{"higher": "", "lower": "", "none": "", "sideways": `the metric "p" has "better": "sideways": must be "lower", "higher" or "none"`} {
		s, err := parseStudy([]byte(strings.Replace(study, "BETTER", better, 1)))
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v; want %s", better, err, want)
		case want == "" && (err != nil || !s.Metrics["w"].MoreIsBetter() || s.Also["w"][0].MoreIsBetter() != (better == "higher")):
			t.Errorf("%s: %v, %+v", better, err, s.Also)
		}
	}
}
