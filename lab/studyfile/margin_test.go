package studyfile_test

import (
	"strings"
	"testing"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/workloads"
)

// The margin of the design judges a study, and --decide uses it. A share in the flag takes precedence.
func TestMarginOfTheDesign(t *testing.T) {
	const file = "name: x\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}, {platform: cn, engines: crun, provisioning: pinned}]\ninstances: 1/1GB\n" +
		"design: {rounds: 3, margin: MARGIN, trials: 1, warmups: 0, timeout: 10s}\n"
	spec, err := studyfile.Parse("x.yaml", []byte(strings.Replace(file, "MARGIN", "5%", 1)), ".", session.Known)
	if err != nil {
		t.Fatal(err)
	}
	for until, want := range map[string]float64{"": 0, "decided": 0.05, "decided at 2%": 0.02} {
		ch := studyfile.Choices{}
		if until != "" {
			if ch.Until, err = studyfile.ParseUntil(until, nil); err != nil {
				t.Fatal(err)
			}
		}
		asked, err := spec.Ask(workloads.FS, ch)
		if err != nil {
			t.Fatal(err)
		}
		if d := asked.Design; d.Margin != 0.05 || d.Decide != want {
			t.Errorf("--until %q: margin %v, decides at %v, want 0.05 and %v", until, d.Margin, d.Decide, want)
		}
	}
	for _, wrong := range []string{"0%", "5", "much"} {
		if _, err := studyfile.Parse("x.yaml", []byte(strings.Replace(file, "MARGIN", wrong, 1)), ".", session.Known); err == nil || !strings.Contains(err.Error(), "margin") {
			t.Errorf("margin %s: %v, want an error that names the margin", wrong, err)
		}
	}
}
