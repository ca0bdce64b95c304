package page

import (
	"os"
	"runtime/metrics"
	"testing"

	"tare/notebook/notebooktest"
)

// BenchmarkMillionTrials reads a folder of one million trials and writes its report: below 10 s and 1 GiB on two
// cores. MiB is the most memory that the Go runtime has taken from the system; page-KiB says that what is drawn stays
// bounded.
func BenchmarkMillionTrials(b *testing.B) {
	dir := notebooktest.Million().Write(b)
	var size int64
	b.ResetTimer()
	for b.Loop() {
		files, err := readAndWrite(dir, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(files[0])
		if err != nil {
			b.Fatal(err)
		}
		size = info.Size()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	b.ReportMetric(float64(sample[0].Value.Uint64())/(1<<20), "MiB")
	b.ReportMetric(float64(size)/1024, "page-KiB")
}
