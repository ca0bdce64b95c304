//go:build linux

package trace

import (
	"golang.org/x/sys/unix"

	"tare/notebook"
)

// The tracer of page faults, by kind of memory, by sampling.
var _ = add(tracer{
	name:     notebook.TracerFaults,
	on:       "perf's software event page-faults",
	programs: []string{"faulted"},
	attach: func(t *Trace) error {
		if err := t.kit.put("faults", 0, [3]uint64{}); err != nil {
			return err
		}
		return t.attachPerf("faulted", unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Sample: faultPeriod, Sample_type: unix.PERF_SAMPLE_ADDR})
	},
	read: (*Trace).readFaults,
})

// faultPeriod is the number of page faults per sample. It is prime, so that it does not coincide with a rhythm of the work.
const faultPeriod = 61

func (t *Trace) readFaults(p *notebook.Trace) error {
	var f [3]uint64
	if err := t.kit.get("faults", &f); err != nil {
		return err
	}
	p.Figures["anonymous_faults"] = float64(f[0] * faultPeriod)
	p.Figures["file_faults"] = float64(f[1] * faultPeriod)
	return nil
}
