//go:build linux

package trace

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"tare/notebook"
)

// The tracer of the kernel stacks of the longest waits. It is expensive, so neither tier includes it.
var _ = add(tracer{
	name:     notebook.TracerStacks,
	on:       onThreads,
	programs: []string{"switched"},
	read:     (*Trace).readStacks,
})

// stackDepth is that of bpf/scheduler.c. A trial's record keeps at most mostStacks stacks.
const (
	stackDepth = 32
	mostStacks = 10
)

func (t *Trace) readStacks(p *notebook.Trace) error {
	k := t.kit
	if err := k.readSymbols(); err != nil {
		return err
	}
	var id uint32
	var e waited
	each := k.coll.Maps["waits"].Iterate()
	for each.Next(&id, &e) {
		var ips [stackDepth]uint64
		if err := k.coll.Maps["stacks"].Lookup(id, &ips); errors.Is(err, ebpf.ErrKeyNotExist) {
			p.Lost += int64(e.Count)
			continue
		} else if err != nil {
			return err
		}
		s := notebook.Stack{Seconds: float64(e.NS) * nano, Count: int64(e.Count)}
		for _, ip := range ips {
			if ip == 0 {
				break
			}
			s.Frames = append(s.Frames, k.symbols.Name(ip))
		}
		s.Frames = withoutTracer(s.Frames)
		p.Stacks = append(p.Stacks, s)
	}
	if err := each.Err(); err != nil {
		return err
	}
	slices.SortFunc(p.Stacks, func(a, b notebook.Stack) int { return cmp.Compare(b.Seconds, a.Seconds) })
	p.Stacks = p.Stacks[:min(len(p.Stacks), mostStacks)]
	return nil
}

// withoutTracer removes the tracer's own frames from a stack, whose innermost frame comes first: its program, and the kernel's functions
// between that and the tracepoint. The tracepoint is in __schedule, so all frames before that one are the tracer's. If the compiler inlined
// or renamed __schedule, the tracer's frames are recognised by their own names.
func withoutTracer(frames []string) []string {
	if i := slices.IndexFunc(frames, func(name string) bool { return strings.HasPrefix(name, "__schedule") || name == "schedule" }); i >= 0 {
		return frames[i:]
	}
	for i, name := range slices.Backward(frames) {
		if strings.HasPrefix(name, "bpf_") || strings.HasPrefix(name, "__bpf_") || strings.HasPrefix(name, "__traceiter_") {
			return frames[i+1:]
		}
	}
	return frames
}
