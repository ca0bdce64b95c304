//go:build linux

package arrivals

import (
	"fmt"

	"tare/lab/crowd"
	"tare/lab/proc"
	"tare/notebook"
)

// hostRoom foresees when the host runs short, by what the containers that were started have taken each.
type hostRoom struct {
	memory, threads int64 // left when there was none
	keep            int64 // bytes
	n               int64 // that were admitted
}

func newRoom() (*hostRoom, error) {
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return nil, err
	}
	h := &hostRoom{keep: int64(crowd.Reserve * float64(all))}
	h.memory, h.threads, err = unused()
	return h, err
}

// unused is how much memory, and how many threads, the host has left.
func unused() (memory, threads int64, err error) {
	if memory, err = proc.Host.Memory("MemAvailable"); err != nil {
		return 0, 0, err
	}
	now, most, err := proc.Host.Tasks()
	return memory, int64(most - now), err
}

// admit counts one more, or says why there is no room for it. Those that were admitted of late have not taken all that they will: of each as much is
// counted as the greater of what one has taken so far, and what the least takes.
func (h *hostRoom) admit() error {
	memory, threads, err := unused()
	if err != nil {
		return err
	}
	each := max(leastGuest, (h.memory-memory)/max(h.n, 1))
	tasks := max(leastThreads, (h.threads-threads)/max(h.n, 1))
	const pending = 8 // that may still be on their way
	switch {
	case memory-min(h.n+1, pending)*each < h.keep:
		return fmt.Errorf("the host has %d MiB of memory left, of which %d are kept, and a container takes about %d: no more than %d are started", memory/notebook.MiB, h.keep/notebook.MiB, each/notebook.MiB, h.n)
	case threads-min(h.n+1, pending)*tasks < keptThreads:
		return fmt.Errorf("the host has room for %d more processes and threads, and a container takes about %d: no more than %d are started", threads, tasks, h.n)
	}
	h.n++
	return nil
}
