package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	"tare/notebook"
)

// BenchmarkMillionTrials reads a folder of one million trials and writes its report: below 10 s and 1 GiB on two
// cores. MiB is the most memory that the Go runtime has taken from the system.
func BenchmarkMillionTrials(b *testing.B) {
	const rounds, trials = 1000, 100
	dir := filepath.Join(b.TempDir(), "R")
	s := sample("large")
	study := s.Folders[0].Study
	study.Version = notebook.Version
	study.Metrics = map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}}
	study.Design.Trials, study.Design.Warmups, study.Design.Cap = trials, 0, rounds
	for _, r := range s.Rows {
		study.Treatments = append(study.Treatments, r.Treatment)
	}
	w, err := notebook.Create(dir, study, s.Hosts[0].Host)
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	// The notebook syncs each line to the disk; a million of them are written past it.
	f, err := os.OpenFile(filepath.Join(dir, "trials.jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	enc := json.NewEncoder(buf)
	n := 0
	for round := range rounds {
		for i, tr := range study.Treatments {
			guest := fmt.Sprintf("g%d-%d", round, i)
			for k := range trials {
				v := s.Rows[i].Mean * (1 + float64((n*7919)%1000)/2e4)
				n++
				err := enc.Encode(notebook.Trial{
					Treatment: tr.ID, Round: round, Guest: guest, Index: k, Start: study.Created.Add(time.Duration(n) * time.Second),
					Command: []string{"ffmpeg", "-i", "/.tare/work/in.mp4", "-c:v", "libx265", "out.mp4"},
					Value:   v, ElapsedS: v, HostS: v, Usage: notebook.Usage{UserS: v, SystemS: 0.1, MaxRSS: 50 << 20, MinFlt: 12345, VCSw: 678, IVCSw: 90},
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	if err := buf.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := Write([]string{dir}, b.TempDir(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	b.ReportMetric(float64(sample[0].Value.Uint64())/(1<<20), "MiB")
	b.ReportMetric(float64(n), "trials")
}
