package words

import (
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/model"
)

// Overhead says what a platform's overhead is over its sizes, for a reader who has not read the method. It is never empty.
func Overhead(v *model.Overhead) (all []string) {
	say := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	if v.Cannot != nil {
		say("%s.", Doubt(v.Cannot))
	} else {
		at := "where the container is as large as the host"
		if v.Separated {
			at = "alone on a large host"
		}
		say("Platform-type overhead (PTO), %s: %s of bare metal's time.", at, param(v.PTO))
		say("Platform-size overhead (PSO): %s", sizeTerm(v))
		if len(v.Left) > 0 {
			say("Predicting each size from the others, the error is %.2g %% (root mean square), at most %+.2g %%.", 100*v.LeftRMS, 100*v.LeftMost)
		}
	}
	for _, s := range []model.Suitable{v.Measured, v.Predicted} {
		if s.Verdict == model.NoAnswer {
			continue
		}
		by := "by the measured sizes"
		if s.Fitted {
			by = "by the fit"
			if s.HostCores > 0 {
				by = fmt.Sprintf("by the fit, on %s", hostOf(s.HostCores))
			}
		}
		say("The smallest CHR at which the overhead stays within %.3g %%, %s: %s.", 100*v.Tolerance, by, Suitable(s))
	}
	if v.Paper != nil && len(v.Points) > 0 {
		say("The paper's range: %g to %g.", v.Paper.Low, v.Paper.High)
	}
	return all
}

// AcrossShows says what a size's change from a small host to a large one shows.
func AcrossShows(a model.Across) string {
	switch q := a.Times; {
	case !q.HasInterval():
		return "no interval: needs more rounds"
	case q.Low > 1 && slices.ContainsFunc(a.Unlike, func(t data.HostTrait) bool { return t.Kind == data.TraitCPU }):
		return "platform-size overhead, or the effect of another CPU model"
	case q.Low > 1:
		return "platform-size overhead"
	case q.High < 1:
		return "less overhead on the larger host, contrary to the paper"
	}
	return "no platform-size overhead shown"
}

// AcrossNotes say how to read comparisons across hosts, each once.
func AcrossNotes(all []model.Across) []string {
	var notes []string
	for _, a := range all {
		note := "On a host as large as the container there is no platform-size overhead: the ratio is the platform-type overhead."
		if !a.Whole() {
			note = "The smaller host is larger than the container: the ratio there contains some platform-size overhead."
		}
		notes = append(notes, note)
	}
	for _, a := range all {
		if len(a.Unlike) > 0 {
			notes = append(notes, "The machines differ in their "+Traits(a.Unlike)+".")
		}
	}
	if slices.ContainsFunc(all, func(a model.Across) bool { return a.FewHost != a.ManyHost }) {
		notes = append(notes, moreThanCores)
	}
	return data.Distinct(notes, func(n string) string { return n })
}

// OnHost names a size's place by its host's CPUs, and if there are several machines by the machine: "112 CPUs of host-112 (CHR 0.14)".
func OnHost(s *data.Summary, p model.Point, id string) string {
	name := Count(p.HostCores, "CPU")
	if len(s.Hosts) > 1 {
		name += " of " + Plain(s.HostOf(id).Name)
	}
	return name + " (CHR " + CHR(p.CHR) + ")"
}

// Separated says in a figure's caption how the ratios of environments change from the smallest host to the largest. It is empty unless all
// environments were measured on the same two hosts.
func Separated(all []*model.Overhead, networks bool) string {
	var parts []string
	var from, to int
	for _, v := range all {
		if len(v.Across) != 1 || from != 0 && (v.Across[0].Few.HostCores != from || v.Across[0].Many.HostCores != to) {
			return ""
		}
		a := v.Across[0]
		from, to = a.Few.HostCores, a.Many.HostCores
		parts = append(parts, Environment(v.Group.Treatment, networks)+": "+Interval(a.Times.Value, a.Times.Low, a.Times.High))
	}
	if parts == nil {
		return ""
	}
	said := fmt.Sprintf("The ratio to bare metal on %d CPUs over that on %d CPUs: %s.", to, from, strings.Join(parts, "; "))
	first := all[0].Across[0]
	if first.Whole() {
		said += " What exceeds 1 is the platform-size overhead, which the paper attributes to CHR. The change on the smaller host is the platform-type overhead."
	} else {
		said += " What exceeds 1 is platform-size overhead, which the paper attributes to CHR."
	}
	if first.FewHost != first.ManyHost {
		said += " " + moreThanCores
	}
	return said
}

// Suitable says a suitable CHR.
func Suitable(s model.Suitable) string {
	less := ""
	if s.OrLess {
		less = ", the smallest measured, or less"
	}
	switch s.Verdict {
	case model.Found:
		if s.Low == s.High {
			return fmt.Sprintf("CHR %.2g%s", s.High, less)
		}
		return fmt.Sprintf("CHR between %.2g%s and %.2g", s.Low, less, s.High)
	case model.NotDecided:
		return fmt.Sprintf("not decided: from CHR %.2g%s upwards it is neither shown nor excluded; run more rounds", s.Low, less)
	case model.NotReached:
		return "not reached: even the largest CHR measured has more overhead"
	}
	return "no answer"
}

// sizeTerm says what the size of an instance costs.
func sizeTerm(v *model.Overhead) string {
	here := Cores(v.Smallest.Cores, v.Smallest.HostCores)
	switch v.Size {
	case model.Falls:
		s := fmt.Sprintf("it falls as the instance grows (%s); at %s it adds %s to the ratio", P(v.SizeP), here, param(v.PSO))
		if v.Separated {
			return s + fmt.Sprintf(": each further CPU of the host costs %s of a CPU, and every size costs %s of a CPU.", param(v.PerCPU), param(v.Fixed))
		}
		return s + fmt.Sprintf(", as if each further CPU of the host cost %s of a CPU.", param(v.PerCPU))
	case model.Grows:
		return fmt.Sprintf("the overhead grows with the instance, contrary to the paper (%s); at %s it changes the ratio by %s.", P(v.SizeP), here, param(v.PSO))
	}
	s := fmt.Sprintf("not shown (%s); at %s it changes the ratio by %s", P(v.SizeP), here, param(v.PSO))
	if v.PSO.Low <= 0 && v.PSO.High >= 0 {
		s += ", which does not exclude 0" // with two terms the test may show nothing where this interval excludes 0
	}
	return s + "."
}

// param writes a parameter with its interval.
func param(p model.Param) string { return Measured(p.Value, p.Low, p.High, "") }

func hostOf(cpus int) string { return "a host with " + Count(cpus, "CPU") }
