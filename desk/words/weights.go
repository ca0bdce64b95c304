package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// weighed is the unit of the sizes in data.Weights.
const weighed = "MiB"

// onBareMetal is the baseline of what guests take of the host's memory.
const onBareMetal = "a process on bare metal"

// Weighed says how many guests there were at once when the row's were weighed, to follow what its table is of; empty where they were not.
func Weighed(s *data.Summary, r *data.Row) string {
	if r.Memory == nil {
		return ""
	}
	said := ", a single guest"
	if n := slices.Max(r.Memory.Guests); n > 1 {
		said = fmt.Sprintf(", %s guests at once", Thousands(n))
	}
	other := func(o *data.Row) bool {
		return o.Memory != nil && o.HostID == r.HostID && o.Treatment.Workload == r.Treatment.Workload && !data.SameWeighing(o, r)
	}
	if slices.ContainsFunc(s.Rows, other) { // the numbers, and KSM, tell their tables apart
		said += " of " + strings.Trim(fmt.Sprint(r.Memory.Guests), "[]")
		switch r.Memory.KSM {
		case "":
			said += ", without KSM"
		case notebook.KSMPaper:
			said += ", with KSM as the paper sets it"
		default:
			said += ", with KSM as the kernel has it"
		}
	}
	return Plain(said)
}

// MemoryPart names a part of a guest's memory, and how many there are of it: "5 × bash".
func MemoryPart(p data.MemoryPart) string {
	switch {
	case p.Others:
		return fmt.Sprintf("%.3g others", p.Count)
	case p.Count == 1:
		return Plain(p.Name)
	}
	return fmt.Sprintf("%.3g × %s", p.Count, Plain(p.Name))
}

// Contained says what a guest's memory has in it that is not the work's, and what is not in it.
func Contained(w *data.Weights) (all []string) {
	if len(w.Points) == 0 {
		return nil
	}
	p := w.Points[len(w.Points)-1]
	say := func(e stats.Estimate, format string) {
		if e.Value > 0 {
			all = append(all, fmt.Sprintf(format, size(e)))
		}
	}
	say(p.Engine, "in it: the engine's own process, %s a guest")
	say(p.Ruler, "taken off: the ruler, %s a guest")
	say(p.Copy, "taken off: the emulator's copy of the kernel, %s a guest")
	say(p.Tables, "not in it: page tables, %s a guest")
	say(p.Kernel, "not in it: the kernel's own memory for it, %s a guest, page tables among it")
	return all
}

// Printed writes a number as a paper prints it.
func Printed(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Inside says what else is known of what a VM's memory is to its guest, or why nothing is.
func Inside(a *data.Alone) (all []string) {
	if a.Why != "" {
		all = append(all, "what its memory is to it is not known: "+Plain(a.Why))
	}
	r := a.RAM
	if r == nil {
		return all
	}
	_, guest, rss := r.Of(notebook.FramesFree)
	all = append(all, fmt.Sprintf("of its RAM %s are free to it, of which the host has pages for %s", Digits(guest, 3)+" "+weighed, Digits(rss, 3)+" "+weighed))
	if r.AtHand.Value > 0 {
		all = append(all, fmt.Sprintf("%s more are free and kept at hand by its CPUs, among what is the kernel's: other", size(r.AtHand)))
	}
	if r.Changed.Value > 0 {
		all = append(all, fmt.Sprintf("%s were something else to it when it was asked again after the scan", size(r.Changed)))
	}
	if r.Out != "" {
		all = append(all, "of its files were left out: "+Plain(r.Out))
	}
	return all
}

// Merging says what KSM came to with the most guests, and what it took; empty where there was none.
func Merging(w *data.Weights) string {
	if len(w.Merged) == 0 {
		return ""
	}
	p := w.Merged[len(w.Merged)-1]
	s := fmt.Sprintf("with KSM, %s: %s a guest; ksmd took %s of CPU time until it merged no more", Count(p.Guests, "guest"), size(p.PSS), Measured(p.CPUS.Value, max(p.CPUS.Low, 0), p.CPUS.High, "s"))
	if p.Unsettled > 0 {
		s += ", and still merged when its time was over in " + Count(p.Unsettled, "weighing")
	}
	return s
}

func size(e stats.Estimate) string { return Measured(e.Value, max(e.Low, 0), e.High, weighed) }
