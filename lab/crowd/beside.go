package crowd

import (
	"tare/lab/proc"
	"tare/notebook"
)

// BesideGuests reads what the host's CPUs and these guests have used so far. What it gives says later what the CPUs did beside the guests since; nil
// where that cannot be known. Each reads some files of the kernel's, and must be called while nothing is measured.
func BesideGuests(guests ...Guest) func() *notebook.Beside {
	read := func() (c proc.CPUTime, ours float64, err error) {
		for _, g := range guests {
			used, err := g.Used()
			if err != nil {
				return c, 0, err
			}
			ours += used.Seconds()
		}
		c, err = proc.Host.CPUTime()
		return c, ours, err
	}
	before, had, err := read()
	return func() *notebook.Beside {
		if err != nil {
			return nil
		}
		after, has, err := read()
		if err != nil || has < had { // a guest of which a process has ended
			return nil
		}
		return &notebook.Beside{
			StolenS: (after.Stolen - before.Stolen).Seconds(),
			OthersS: max((after.Busy-before.Busy).Seconds()-(has-had), 0),
			OfS:     (after.All - before.All).Seconds(),
		}
	}
}

// Throttled reads for how long a guest's CPU quota has held it back so far. What it gives says later for how many seconds it has since; 0 where that
// cannot be known. It must be called while nothing is measured.
func Throttled(g Guest) func() float64 {
	before, err := g.Throttled()
	return func() float64 {
		if err != nil {
			return 0
		}
		after, err := g.Throttled()
		if err != nil {
			return 0
		}
		return max(after-before, 0).Seconds()
	}
}
