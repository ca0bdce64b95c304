package words

import (
	"fmt"

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
