package ruler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"tare/notebook"
)

// Limits on what a host accepts from the tracers in a guest. maxTrace fits in a trial's line in a notebook, in addition to what the
// host's own tracers saw.
const (
	maxTrace   = 256 << 10 // bytes, as JSON
	maxFigures = 4096
	maxSpread  = 512 // distributions
	maxCounts  = 64  // counts of one distribution
	maxStacks  = 256
	maxFrames  = 128 // frames of one stack, the kernel's own limit
	maxLabel   = 512 // bytes of a name: a kernel's symbol is no longer

	// No trial has more of anything, and sums over all trials of a study stay far below the limits of their types.
	maxNumber = 1 << 62
	maxCount  = 1 << 48
)

// checkTrace reports whether p can be the observation of a guest with these tracers, in an interval that the host saw last at most
// seen.
func checkTrace(p *notebook.Trace, asked []string, seen time.Duration) error {
	bad := func(expected, format string, a ...any) error {
		return violation(expected, "a trace with "+format, a...)
	}
	if len(asked) == 0 {
		return violation("none: the order named no tracers", "what tracers saw")
	}
	if p.Inside != nil {
		return bad("none: no guest looks into another", "others inside")
	}
	if data, err := json.Marshal(p); err != nil || len(data) > maxTrace {
		return bad(fmt.Sprintf("numbers, and at most %d bytes in all", maxTrace), "%d bytes (%v)", len(data), err)
	}
	for _, name := range p.Looked {
		if !slices.Contains(asked, name) {
			return bad("those that were asked for", "the name %.32q", name)
		}
	}
	if len(p.Looked) > len(asked) || len(p.Missing) > len(notebook.TracerNames) {
		return bad("each once", "%d names of those that looked and %d that did not", len(p.Looked), len(p.Missing))
	}
	for name, why := range p.Missing {
		if !slices.Contains(notebook.TracerNames, name) || len(why.String()) > maxText {
			return bad("a known one, and a short reason", "%.32q missing for a reason of %d bytes", name, len(why.String()))
		}
	}
	sum := 0.0
	for key, s := range p.Wall {
		if !slices.Contains(notebook.Walls, key) || !number(s) {
			return bad("known keys and no negative times", "%.32q at %v s", key, s)
		}
		sum += s
	}
	if most := 2*seen + time.Second; sum > most.Seconds() {
		return bad(fmt.Sprintf("about %v, as the host saw", seen), "%v s in all", sum)
	}
	if len(p.Figures) > maxFigures || len(p.Spread) > maxSpread || len(p.Stacks) > maxStacks {
		return bad(fmt.Sprintf("at most %d, %d and %d", maxFigures, maxSpread, maxStacks),
			"%d figures, %d distributions and %d stacks", len(p.Figures), len(p.Spread), len(p.Stacks))
	}
	for name, v := range p.Figures {
		base := name[strings.LastIndexByte(name, '.')+1:]
		known := slices.ContainsFunc(notebook.TracerMetrics, func(f notebook.TracerMetric) bool { return f.Name == base })
		if !known || !label(name) || !number(v) {
			return bad("known figures, none below 0 or too large", "%.32q at %v", name, v)
		}
	}
	for _, d := range p.Spread {
		if err := checkSpread(d); err != nil {
			return bad("a known quantity's sizes", "a distribution of %.32q with %v", d.What, err)
		}
	}
	for _, s := range p.Stacks {
		if len(s.Frames) > maxFrames || !number(s.Seconds) || !count(s.Count) || slices.ContainsFunc(s.Frames, func(f string) bool { return !label(f) }) {
			return bad(fmt.Sprintf("at most %d names, and no number below 0", maxFrames), "a stack of %d frames, %d times, %v s", len(s.Frames), s.Count, s.Seconds)
		}
	}
	if !count(p.Lost) {
		return bad(fmt.Sprintf("at least 0, and at most %d", int64(maxCount)), "%d events lost", p.Lost)
	}
	return nil
}

func checkSpread(d notebook.Distribution) error {
	roles := []string{notebook.RoleWork, notebook.RoleRuler, notebook.RoleVCPU, notebook.RoleIO, notebook.RoleEmulator, ""}
	whats := []string{notebook.OnCPU, notebook.OffCPU, notebook.RunQueue, notebook.BlockIO}
	switch {
	case !slices.Contains(roles, d.Role) || !slices.Contains(whats, d.What) || d.Unit != "s" || !label(d.Of):
		return fmt.Errorf("role %.32q, unit %.32q, of %.32q", d.Role, d.Unit, d.Of)
	case len(d.Counts) > maxCounts || slices.ContainsFunc(d.Counts, func(n int64) bool { return !count(n) }):
		return fmt.Errorf("%d counts, or one below 0 or too large", len(d.Counts))
	case !number(d.Sum):
		return fmt.Errorf("the sum %v", d.Sum)
	}
	return nil
}

// number reports whether v is a possible size.
func number(v float64) bool { return v >= 0 && v <= maxNumber }

// count reports whether n is a possible count.
func count(n int64) bool { return n >= 0 && n <= maxCount }

// label reports whether s may be in a report.
func label(s string) bool {
	return len(s) <= maxLabel && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// fit reduces an observation to what the host accepts: it omits the excess, and says that it is missing.
func fit(p *notebook.Trace, asked []string, elapsed time.Duration) *notebook.Trace {
	if p == nil {
		return missed(asked, notebook.Say("saw-nothing"))
	}
	p.Inside = nil
	for _, part := range []struct {
		tracer, what string
		drop         func()
	}{
		{notebook.TracerStacks, "stacks", func() { p.Stacks = nil }},
		{notebook.TracerScheduler, "distributions", func() { p.Spread = nil }},
		{notebook.TracerIO, "figures", func() { p.Figures = nil }},
	} {
		data, err := json.Marshal(p)
		if err != nil || len(data) <= maxTrace {
			break
		}
		part.drop()
		if p.Missing == nil {
			p.Missing = map[string]*notebook.Message{}
		}
		p.Missing[part.tracer] = notebook.Say("part-left-out", "what", part.what, "bytes", len(data), "most", maxTrace)
	}
	if err := checkTrace(p, asked, elapsed); err != nil {
		return missed(asked, notebook.TextMessage(clip(err.Error())))
	}
	return p
}

// missed is the observation if no tracer could be attached.
func missed(asked []string, why *notebook.Message) *notebook.Trace {
	p := &notebook.Trace{Looked: []string{}, Missing: map[string]*notebook.Message{}}
	for _, name := range asked {
		p.Missing[name] = why
	}
	return p
}
