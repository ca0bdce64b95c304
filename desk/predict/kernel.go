package predict

// kernel is bare metal's time for an event, as the probes show it: in the kernel, and for the tracers; seconds, by Events.
//
// The same call may be more work for the kernel in a program than in a loop: a longer path, a process with more pages, a socket with a queue. A platform that
// does this work itself, or checks each step of it, then takes more in about the same proportion. Counts do not show that, and the program's time
// in the kernel does.
type kernel struct{ takes, tracing []float64 }

// kernelOf estimates the times by least squares, none of them below 0.
func kernelOf(works []*Work) kernel {
	var probes []*Work
	for _, w := range works {
		if w.probe() {
			probes = append(probes, w)
		}
	}
	k := kernel{tracing: leastSquares(probes, func(w *Work) float64 { return w.slower - 1 })}
	k.takes = leastSquares(probes, k.system)
	return k
}

// system is the share of the time without tracers that a work is in the kernel. What tracers add to it is known from the events: the work's
// own slowdown is too noisy to tell.
func (k kernel) system(w *Work) float64 {
	return max(w.system-sum(w.Rates, k.tracing), leastUntraced*w.system)
}

const (
	leastUntraced = 0.2  // of the time in the kernel: tracers take no more than the rest
	leastKernel   = 0.03 // share of the time that events take in the kernel by the probes: with less, their size is not known
	smallest      = 0.25 // size of events
	largest       = 8
)

// size is how much more time the kernel takes for an event of a work than for one of the same kind in a probe. 1: it is not known.
func (k kernel) size(w *Work) float64 {
	expected := sum(w.Rates, k.takes)
	if !(expected >= leastKernel) {
		return 1
	}
	return min(max(k.system(w)/expected, smallest), largest)
}

// sum is that of rates times something of each event.
func sum(rates, of []float64) (all float64) {
	for i, rate := range rates {
		all += rate * of[i]
	}
	return all
}

// leastSquares finds a time for each event that the kernel handles, not below 0, so that rates times times are near something of the works. It
// goes down one time after the other (Franc, Hlaváč and Navara 2005).
func leastSquares(works []*Work, of func(*Work) float64) []float64 {
	const (
		sweeps = 500
		ridge  = 1e-4 // of events that differ too little between the works
	)
	times := make([]float64, len(Events))
	most := make([]float64, len(Events))
	rest := make([]float64, len(works)) // of each work, that is not explained yet
	for i, w := range works {
		rest[i] = of(w)
		for k, rate := range w.Rates {
			most[k] = max(most[k], rate)
		}
	}
	for range sweeps {
		for k, e := range Events {
			if most[k] == 0 || !e.inKernel() {
				continue
			}
			along, squares := 0.0, ridge
			for i, w := range works {
				share := w.Rates[k] / most[k]
				along, squares = along+share*(rest[i]+w.Rates[k]*times[k]), squares+share*share
			}
			better := max(0, along/squares) / most[k]
			for i, w := range works {
				rest[i] -= w.Rates[k] * (better - times[k])
			}
			times[k] = better
		}
	}
	return times
}

// inKernel says whether an event is one of the kernel's.
func (e Event) inKernel() bool { return e.Name != Computing && e.Name != DiskWaits }
