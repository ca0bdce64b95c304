package terminal_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
)

// BenchmarkMillion summarises a folder of one million trials: 20 treatments, 10,000 rounds, 5 trials in each guest.
func BenchmarkMillion(b *testing.B) {
	l := newLab()
	l.rounds = 0
	for _, i := range []notebook.Instance{one, large} {
		l.add(treatmentOf("bm", "", "", "", i), 4).aa(i, 4)
		for _, p := range []string{"vanilla", "pinned"} {
			l.add(treatmentOf("cn", "docker", "", p, i), 4.2).add(treatmentOf("cn", "crun", "", p, i), 4.2)
			l.add(treatmentOf("vm", "qemu", "kvm", p, i), 5).add(treatmentOf("vmcn", "crun", "kvm", p, i), 5)
		}
	}
	dir := l.write(b)
	file := func(name string, write func(*json.Encoder) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		if err := write(json.NewEncoder(w)); err != nil {
			b.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	const rounds, trials = 10_000, 5
	file("guests.jsonl", func(e *json.Encoder) error {
		for r := range rounds {
			for _, t := range l.study.Treatments {
				if err := e.Encode(notebook.Guest{ID: fmt.Sprintf("r%d-%s", r, t.ID), Treatment: t.ID, Round: r, Start: at, RulerCostS: 4e-4, RulerCostN: 20}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	file("trials.jsonl", func(e *json.Encoder) error {
		for r := range rounds {
			for _, t := range l.study.Treatments {
				for i := range trials {
					v := l.cost[t.ID] * (1 + float64((r*7+i*3)%101)/1000)
					if err := e.Encode(notebook.Trial{
						Treatment: t.ID, Round: r, Guest: fmt.Sprintf("r%d-%s", r, t.ID), Index: i, Start: at.Add(time.Duration(r) * time.Minute),
						Command: []string{"/usr/bin/ffmpeg", "-nostdin", "-i", "/.tare/work/input.mp4", "-c:v", "libx265", "-an", "-f", "mp4", "/.tare/scratch/out.mp4"},
						Value:   v, ElapsedS: v, HostS: v + 1e-4,
						Usage: notebook.Usage{UserS: v, SystemS: 0.1, MaxRSS: 2e8, MinFlt: 123456, VCSw: 1234, IVCSw: 567},
					}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	b.ResetTimer()
	for b.Loop() {
		s, err := data.Read([]string{dir}, data.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if s.Folders[0].Trials != len(l.study.Treatments)*rounds*trials {
			b.Fatalf("%d trials", s.Folders[0].Trials)
		}
	}
}
