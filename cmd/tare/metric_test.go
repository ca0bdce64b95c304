package main

import (
	"slices"
	"strings"
	"testing"
)

// Errors in a metric are reported before anything is done, and name the wrong part.
func TestMetricsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"triad":               `--metric "triad": must begin with a name and an equals sign, as in NAME=EXPRESSION,UNIT,higher`,
		"triad=(x),MB/s":      `--metric "triad=(x),MB/s": an expression, a unit, and higher, lower or none must follow "triad="`,
		"triad=(x),MB/s,more": `--metric "triad=(x),MB/s,more": "more": must end in higher or lower, whichever is better, or none where neither is`,
		"triad=x,MB/s,higher": `--metric "triad=x,MB/s,higher": match: "x": must have a group in parentheses around the number`,
	} {
		cmd := benchCommand()
		cmd.SetArgs([]string{"--metric", text, "--", "true"})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	for want, args := range map[string][]string{
		"metrics: needs a command that prints them":                                  {"--metric", "a=(x),s,lower", "--image", "x", "--service", "80", "--load", "/"},
		`metrics: also: - name: "a" is used twice: each metric must have its own na`: {"--metric", "a=(x),s,lower", "--metric", "a=(y),s,lower", "--", "true"},
	} {
		cmd := benchCommand()
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", args, err, want)
		}
	}
}

// A user's own command is compared by what it prints, in the given direction. If it does not print the metric, or prints too much
// to be read, the trial fails with that cause.
func TestMetricsOfACommand(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	base := []string{"bench", "--image", h.image, "--instances", "1/512MB"}
	// The output depends on where the command runs: in a container process 1 is the ruler's own parent, and on bare metal it is
	// not.
	h.must(append(slices.Clone(base), "--platforms", "bm,cn:crun|runc", "--rounds", "2", "--out", "R",
		"--metric", "rate=^rate: ([0-9.e+]+),MB/s,higher", "--metric", "delay=delay=([0-9]+),ms,lower", "--", "sh", "-c",
		"echo rate: 1; if [ $$ -lt 100 ]; then echo rate: 8e+1; echo delay=5; else echo rate: 100; echo delay=4; fi")...)
	var rows []struct {
		Platform, Metric, Unit, Better string
		AA                             bool `json:"aa_control"`
		Mean, Ratio                    *float64
		Failed                         int
		Also                           []struct {
			Name, Better string
			Ratio        struct{ Value *float64 }
		} `json:"secondary_metrics"`
	}
	decodeRows(t, h.must("summary", "R", "--format", "json"), &rows)
	for _, r := range rows {
		rate, ratio, delay := 100.0, 1.0, 1.0
		if r.Platform != "bm" {
			rate, ratio, delay = 80, 0.8, 1.25
		}
		if r.Metric != "rate" || r.Unit != "MB/s" || r.Better != "higher" || r.Failed != 0 || r.Mean == nil || *r.Mean != rate || r.Ratio == nil || *r.Ratio != ratio ||
			len(r.Also) != 1 || r.Also[0].Better != "lower" || r.Also[0].Ratio.Value == nil || *r.Also[0].Ratio.Value != delay {
			t.Errorf("%+v", r)
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	said := strings.Join(strings.Fields(h.must("summary", "R")), " ")
	for _, want := range []string{"has 20.0 % lower rate", "Rate; higher is better.", "Delay; "} {
		if !strings.Contains(said, want) {
			t.Errorf("the summary does not say %q: %s", want, said)
		}
	}
	for _, c := range []struct{ metric, command, want string }{
		{"x=never ([0-9]+),s,lower", "echo something else", `nothing in its output matches "never ([0-9]+)", the expression of x: the last of it is "something else"`},
		{"x=x ([0-9]+),s,lower", "i=0; while [ $i -lt 21 ]; do printf 'x 1 %65530d\n' 0; i=$((i+1)); done", "it printed more than 1024 KiB, the limit"},
	} {
		_, errs, status := h.run(append(slices.Clone(base), "--platforms", "bm", "--rounds", "1", "--metric", c.metric, "--", "sh", "-c", c.command)...)
		if status == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit status %d: %s\nwant %s", c.command, status, errs, c.want)
		}
	}
}
