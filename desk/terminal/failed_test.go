package terminal_test

import (
	"bytes"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook"
)

// A tenth of a row's trials may fail; more, or all of a round, keeps it from being ranked.
func TestWhatFailsIsNotRanked(t *testing.T) {
	l := newLab()
	l.rounds = 10
	fails := map[string]func(round, trial int) bool{
		"few":   func(round, trial int) bool { return trial == 0 && round < 3 },
		"many":  func(round, trial int) bool { return trial == 0 && round < 4 },
		"round": func(round, _ int) bool { return round == 2 },
	}
	l.add(treatmentOf("bm", "", "", "", large), 4)
	for _, provisioning := range []string{"few", "many", "round", "none"} {
		l.add(treatmentOf("cn", "docker", "", provisioning, large), 4)
	}
	l.fail = func(id string, round, trial int) string {
		for name, f := range fails {
			if strings.Contains(id, name) && f(round, trial) {
				return "killed"
			}
		}
		return ""
	}
	s := read(t, data.Options{}, l.write(t))
	for _, c := range []struct {
		provisioning, failures string
		lost                   int
		unreliable             bool
	}{
		{"few", "3 of 30 trials failed: killed", 0, false}, {"many", "4 of 30 trials failed: killed", 0, true},
		{"round", "3 of 30 trials failed: killed", 1, true}, {"none", "", 0, false},
	} {
		r := row(t, s, "cn/docker/"+c.provisioning+"/large")
		failures := ""
		if f, any := r.Failures(); any {
			failures = words.Doubt(f)
		}
		if failures != c.failures || r.Lost != c.lost || r.Unreliable() != c.unreliable {
			t.Errorf("%s: %q, %d rounds lost, %v", c.provisioning, failures, r.Lost, r.Unreliable())
		}
	}
	if !strings.Contains(answer(s), "2 treatments are not ranked: too many runs failed.") || strings.Contains(answer(s), "many docker") {
		t.Error(answer(s))
	}
}

// Treatments left out for one reason share one sentence, also if a folder of the first format has the reason as a sentence.
func TestOmissionsByReason(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	const why = "no VM with kvm: a long story"
	l.study.LeftOut = []notebook.LeftOut{
		{Treatment: treatmentOf("vm", "qemu", "kvm", "vanilla", large), Reason: notebook.TextMessage(why)},
		{Treatment: treatmentOf("vm", "qemu", "kvm", "pinned", large), Reason: notebook.Say("accelerator-missing", "accelerator", "kvm", "cause", "a long story")},
	}
	l.study.LeftOut = append(l.study.LeftOut, notebook.LeftOut{Treatment: treatmentOf("bm", "", "", "", half), Reason: notebook.TextMessage("bare metal has no half core")})
	s := read(t, data.Options{}, l.write(t))
	if o := words.Omissions(s); len(o) != 2 || len(o[0]) != 2 || o[0][0].Reason.Text() != why || len(o[1]) != 1 {
		t.Errorf("%+v", o)
	}
	var b bytes.Buffer
	if err := terminal.Summary(&b, s, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.Count(out, why) != 2 || !strings.Contains(out, "ffmpeg, VM, large on bench and 1 more: "+why) || !strings.Contains(out, "ffmpeg, bare metal, 0.5/1GB on bench: bare metal") {
		t.Error(out)
	}
}
