package model

import (
	"fmt"
	"strconv"
)

// Sentences say what the overhead is, for a reader who has not read the method; never empty.
func (v *Overhead) Sentences() []string {
	var all []string
	say := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	if v.Cannot != "" {
		say("%s.", v.Cannot)
	} else {
		at := "where the container is the host"
		if v.Separated {
			at = "on a large host that it has for itself"
		}
		say("Platform-type overhead (PTO), %s: %s of bare metal's time.", at, v.PTO)
		say("Platform-size overhead (PSO): %s", v.sizeWords())
		if len(v.Left) > 0 {
			say("Each size predicted from the others: wrong by %.2g %% (root mean square), at most by %+.2g %%.", 100*v.LeftRMS, 100*v.LeftMost)
		}
	}
	for _, s := range []Suitable{v.Measured, v.Predicted} {
		if s.Verdict == NoAnswer {
			continue
		}
		by := "by the measured sizes"
		if s.Fitted {
			by = "by the fit"
			if s.HostCores > 0 {
				by = fmt.Sprintf("by the fit, on %s", cpus(s.HostCores))
			}
		}
		say("Smallest CHR from which the overhead stays within %.3g %%, %s: %s.", 100*v.tolerance, by, s)
	}
	if v.Paper != nil && len(v.Points) > 0 {
		say("The paper's range: %g to %g.", v.Paper.Low, v.Paper.High)
	}
	return all
}

func (v *Overhead) sizeWords() string {
	here := sizeOf(v.Smallest.Cores, v.Smallest.HostCores)
	switch v.Size {
	case Falls:
		s := fmt.Sprintf("it falls as the instance grows (%s); at %s it adds %s to the ratio", pWords(v.SizeP), here, v.PSO)
		if v.Separated {
			return s + fmt.Sprintf(": each CPU of the host beyond its own costs %s of a core, and %s of a core goes whatever the size.", v.PerCPU, v.Fixed)
		}
		return s + fmt.Sprintf(", as if each CPU of the host beyond its own cost %s of a core.", v.PerCPU)
	case Grows:
		return fmt.Sprintf("the opposite: the overhead grows with the instance (%s); at %s it changes the ratio by %s.", pWords(v.SizeP), here, v.PSO)
	}
	s := fmt.Sprintf("not shown (%s); at %s it changes the ratio by %s", pWords(v.SizeP), here, v.PSO)
	if v.PSO.Low <= 0 && v.PSO.High >= 0 {
		s += ", which does not exclude 0" // with two terms the test may show nothing where this interval excludes 0
	}
	return s + "."
}

// String is the value with its interval.
func (p Param) String() string { return fmt.Sprintf("%.3g (%.3g to %.3g)", p.Value, p.Low, p.High) }

func pWords(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// sizeOf names a size on its host.
func sizeOf(cores float64, hostCores int) string {
	return fmt.Sprintf("%s of %d cores", strconv.FormatFloat(cores, 'g', 4, 64), hostCores)
}

func sizes(n int) string {
	if n == 1 {
		return "1 size"
	}
	return fmt.Sprintf("%d sizes", n)
}

func cpus(n int) string {
	if n == 1 {
		return "a host of 1 CPU"
	}
	return fmt.Sprintf("a host of %d CPUs", n)
}

func rowsAre(n int) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
}
