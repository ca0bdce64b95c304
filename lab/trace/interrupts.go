//go:build linux

package trace

import (
	"bytes"

	"tare/notebook"
)

// The tracer of interrupts: of devices and soft ones, on the whole host, and where the guest's threads were when one woke them. The paper
// "pinning" calls that I/O affinity, and counts at least three I/O interrupts for a web request (sections III-B3, III-B4 and IV-C).
var _ = add(tracer{
	name:     notebook.TracerInterrupts,
	on:       "the interrupts' tracepoints (Linux 5.18 or later with BTF)",
	programs: []string{"irq_entry", "irq_exit", "soft_entry", "soft_exit", "io_waking"},
	read:     (*Trace).readInterrupts,
})

// softInterrupts are the kernel's names of soft interrupts, by number (linux/interrupt.h).
var softInterrupts = [...]string{"hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"}

// interrupt and serving mirror the structs of these names in bpf/interrupts.c.
type interrupt struct {
	N      uint64
	Device [24]byte
}

type serving struct {
	Hard, Soft           uint32
	Softirqs             [len(softInterrupts)]uint64
	Wakeups, Remote, Far uint64
}

func (t *Trace) readInterrupts(p *notebook.Trace) error {
	p.Figures["interrupts"] = 0
	var number uint32
	var i interrupt
	each := t.kit.coll.Maps["interrupts"].Iterate()
	for each.Next(&number, &i) {
		p.Figures["interrupts"] += float64(i.N)
		device, _, _ := bytes.Cut(i.Device[:], []byte{0})
		p.Figures[string(device)+".interrupts"] += float64(i.N)
	}
	if err := each.Err(); err != nil {
		return err
	}
	var all []serving
	if err := t.kit.coll.Maps["serving"].Lookup(uint32(0), &all); err != nil {
		return err
	}
	for _, s := range all {
		for i, n := range s.Softirqs {
			p.Figures["softirqs"] += float64(n)
			if n > 0 {
				p.Figures[softInterrupts[i]+".softirqs"] += float64(n)
			}
		}
		p.Figures["io_wakeups"] += float64(s.Wakeups)
		p.Figures["remote_io_wakeups"] += float64(s.Remote)
		p.Figures["far_io_wakeups"] += float64(s.Far)
	}
	return nil
}
