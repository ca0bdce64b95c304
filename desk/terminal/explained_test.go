package terminal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook"
)

// Trials that probes observed count in no mean, ratio or count, and make no row unreliable. The text says if one failed.
func TestExplainedTrialsAreNotMeasured(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 5)
	plain := l.write(t)
	explained := filepath.Join(t.TempDir(), "R")
	if err := os.CopyFS(explained, os.DirFS(plain)); err != nil {
		t.Fatal(err)
	}
	var more bytes.Buffer
	for round := range l.rounds {
		for _, tr := range l.study.Treatments {
			x := notebook.Trial{Treatment: tr.ID, Round: round, Traced: true, Start: at, Value: 900, ElapsedS: 900}
			if tr.Platform == notebook.CN {
				x.Failure = notebook.TextMessage("killed")
			}
			if err := json.NewEncoder(&more).Encode(x); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(explained, "trials.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, more.Bytes()...), 0o644); err != nil {
		t.Fatal(err)
	}
	a, b := read(t, data.Options{}, plain), read(t, data.Options{}, explained)
	if answer(a) != answer(b) {
		t.Errorf("%s\n%s", answer(a), answer(b))
	}
	for i := range a.Rows {
		x, y := a.Rows[i], b.Rows[i]
		if x.Mean != y.Mean || x.MeanHigh != y.MeanHigh || x.Trials != y.Trials || x.Failed != y.Failed || y.Unreliable() || x.DotsOf != y.DotsOf || x.Guests != y.Guests {
			t.Errorf("%s: %+v, and with explained trials %+v", x.Treatment.ID, x, y)
		}
	}
	if n := strings.Join(words.Doubts(row(t, b, "cn/crun/pinned/large").Doubts), "; "); !strings.Contains(n, "a traced trial failed: killed") {
		t.Error(n)
	}
	if f := b.Folders[0]; f.Begun || f.Trials != a.Folders[0].Trials+10 {
		t.Errorf("%+v", f)
	}
}

// Rungs of the isolation ladder have rows of their own, are named, and can be a baseline.
func TestIsolation(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	for i, layer := range []string{"cgroup", "quota", notebook.IsolationFull} {
		tr := treatmentOf("cn", notebook.LayersEngine, "", "", large)
		tr.Isolation = layer
		tr.ID += layer
		l.add(tr, 4.1+0.2*float64(i))
	}
	dir := l.write(t)
	s := read(t, data.Options{}, dir)
	if len(s.Rows) != 4 {
		t.Fatalf("%d rows", len(s.Rows))
	}
	var table, rows bytes.Buffer
	if err := terminal.Summary(&table, s, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	if err := export.Summary(&rows, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"container, layers up to cgroup ", "container, layers up to quota ", "container, every layer "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	// A layer is not a platform to choose. The answer refers to the table of layers instead.
	if strings.Contains(answer(s), "up to quota") || !strings.Contains(answer(s), "every layer") || !strings.Contains(answer(s), "The cost of each layer of isolation is in the table") {
		t.Error(answer(s))
	}
	layers := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	tr := treatmentOf("cn", notebook.LayersEngine, "", "", large)
	tr.Isolation = "quota"
	layers.add(tr, 4.4)
	if s := read(t, data.Options{}, layers.write(t)); !strings.Contains(answer(s), "FFmpeg in a container, layers up to quota is 1") || strings.Contains(answer(s), "The cost of each layer") {
		t.Error(answer(s))
	}
	if !strings.Contains(rows.String(), `"isolation": "quota"`) {
		t.Error(&rows)
	}
	b := read(t, data.Options{Baseline: map[string]string{"platform": "cn", "isolation": "cgroup"}}, dir)
	if r := row(t, b, "cn/layers/large"+notebook.IsolationFull); r.Baseline != "cn/layers/largecgroup" {
		t.Errorf("%+v", r)
	}
	_, err := data.Read([]string{dir}, data.Options{Baseline: map[string]string{"platform": "cn"}})
	if err == nil || !strings.Contains(err.Error(), "name one of: cn:layers,isolation=cgroup;") {
		t.Error(err)
	}
}
