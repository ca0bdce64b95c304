//go:build linux

package trace

import (
	"errors"

	"tare/notebook"
)

// The first tier's tracer of the scheduler reads what the kernel itself keeps for each thread, at the thread's end and at the
// trial's: how long it ran, and how long it was in run queues, throttled or not. These make a time breakdown.
var _ = add(tracer{
	name:     notebook.TracerThreads,
	on:       onThreads,
	programs: following,
	read:     (*Trace).readThreads,
})

func (t *Trace) readThreads(p *notebook.Trace) error {
	if t.kit.events() {
		return errors.New("each switch is traced, which is more precise")
	}
	p.Figures["elapsed_s"] = float64(t.look.End-t.look.Begin) * nano
	for r := range roleNames {
		own := &t.span.Own[r]
		if own[ownRan] == 0 && own[ownDelayed] == 0 {
			continue
		}
		prefix := prefix(r)
		p.Figures[prefix+"tasks"] = float64(t.span.Counts[r][countTasks])
		p.Figures[prefix+"run_s"] = float64(own[ownRan]) * nano
		p.Figures[prefix+"delay_s"] = float64(own[ownDelayed]) * nano
		p.Figures[prefix+"switches"] = float64(own[ownVoluntary] + own[ownInvoluntary])
		p.Figures[prefix+"waits"] = float64(own[ownVoluntary])
		p.Figures[prefix+"preemptions"] = float64(own[ownInvoluntary])
		if own[ownBlocked] > 0 { // only where kernel.task_delayacct is on
			p.Figures[prefix+"blocked_s"] = float64(own[ownBlocked]) * nano
		}
	}
	return nil
}
