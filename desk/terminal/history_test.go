package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/history"
	"tare/notebook/notebooktest"
)

// A history says what changed, since when, and what else did. It says where it is too short.
func TestHistory(t *testing.T) {
	var runs []*data.Summary
	for i := range 20 {
		f := notebooktest.Night(i)
		docker := 1.02 + 0.001*float64(i%3)
		if i >= 15 {
			f.Host.Kernel = "7.0"
			docker *= 1.05
		}
		f.Add("bm large", 1).Add("cn docker vanilla large", docker)
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Folders[0].Dir = fmt.Sprintf("R%d", i)
		runs = append(runs, s)
	}
	for n, want := range map[int][]string{
		20: {"20 runs of quick, from 1 October 2026, 07:00 UTC to 20 October 2026, 07:00 UTC: 1 of 1 configuration changed.",
			"ffmpeg, Docker, CPU quota (--cpus), large: costs 4.9 % more since 16 October 2026, 07:00 UTC (R15): 1.071 instead of 1.021 times bare metal",
			"Also different since then: the kernel: 6.18 before, 7.0 after."},
		15: {"Tare finds no change in 1 configuration."},
		3:  {"3 runs of quick", "too few to look for changes; a configuration needs at least 10."},
	} {
		h, err := history.From(runs[:n])
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := History(&b, h, Screen{Width: 1000}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%d runs: no %q in\n%s", n, w, b.String())
			}
		}
	}
}
