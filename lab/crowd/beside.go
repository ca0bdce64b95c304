package crowd

import (
	"tare/lab/proc"
	"tare/notebook"
)

// BesideGuests reads how much CPU time the host and these guests have used so far. The function it returns reports what the host's
// CPUs did since then in addition to the guests; nil where that cannot be known. Both calls read some files of the kernel and must
// be made while nothing is measured.
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
		if err != nil || has < had { // a process of a guest has ended
			return nil
		}
		return &notebook.Beside{
			StolenS: (after.Stolen - before.Stolen).Seconds(),
			OthersS: max((after.Busy-before.Busy).Seconds()-(has-had), 0),
			OfS:     (after.All - before.All).Seconds(),
		}
	}
}

// Throttled reads for how long a guest's CPU quota has held it back so far. The function it returns gives the seconds since then; 0
// where they cannot be known. Both calls must be made while nothing is measured.
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
