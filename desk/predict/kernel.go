package predict

// kernel holds bare metal's times for one event of each kind, in seconds, in the order of Events. The probes show them: takes is the time in
// the kernel, and tracing is the time that the tracers add.
//
// The same call may be more work for the kernel in a program than in a loop: a longer path, a process with more pages, a socket with a
// queue. A platform that does this work itself, or checks each step of it, then needs more time in about the same proportion. The counts of
// events do not show this difference. The program's time in the kernel shows it.
type kernel struct{ takes, tracing []float64 }

// kernelOf estimates the times from the probes by least squares. No time is below 0.
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

// system is the share of its time that a work spends in the kernel, without the time that tracers add there. This time is estimated from the
// counts of events, because the work's own slowdown is too noisy.
func (k kernel) system(w *Work) float64 {
	return max(w.system-sum(w.Rates, k.tracing), leastUntraced*w.system)
}

const (
	leastUntraced = 0.2  // share of the traced time in the kernel that is the work's own: tracers take at most the rest
	leastKernel   = 0.03 // least expected share of the time in the kernel, by the probes: with less, the size is not known
	smallest      = 0.25 // least size of events
	largest       = 8    // greatest size of events
)

// size is the kernel's time for the events of a work, divided by its time for the same events in the probes. It is 1 if it is not known.
func (k kernel) size(w *Work) float64 {
	expected := sum(w.Rates, k.takes)
	if !(expected >= leastKernel) {
		return 1
	}
	return min(max(k.system(w)/expected, smallest), largest)
}

// sum is the sum of the rates, each multiplied by a value of its event.
func sum(rates, of []float64) (all float64) {
	for i, rate := range rates {
		all += rate * of[i]
	}
	return all
}

// leastSquares finds a time of at least 0 for each kind of event in the kernel. The sum of rates times these times is to be near a value of each
// work. It uses coordinate descent (Franc, Hlaváč and Navara 2005).
func leastSquares(works []*Work, of func(*Work) float64) []float64 {
	const (
		sweeps = 500
		ridge  = 1e-4 // keeps the times small for kinds of events whose rates differ too little between the works
	)
	times := make([]float64, len(Events))
	most := make([]float64, len(Events))
	rest := make([]float64, len(works)) // the part of each work's value that the times do not explain yet
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

// inKernel reports whether the kernel handles events of this kind.
func (e Event) inKernel() bool { return e.Name != Computing && e.Name != DiskWaits }
