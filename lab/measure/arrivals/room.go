//go:build linux

package arrivals

import (
	"tare/lab/crowd"
	"tare/lab/proc"
	"tare/notebook"
)

// hostRoom predicts when the host runs short, from what each started container has taken so far.
type hostRoom struct {
	memory, threads int64 // left before the first container
	keep            int64 // bytes
	n               int64 // containers admitted so far
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

// unused is how much memory, in bytes, and how many threads the host has left.
func unused() (memory, threads int64, err error) {
	if memory, err = proc.Host.Memory("MemAvailable"); err != nil {
		return 0, 0, err
	}
	now, most, err := proc.Host.Tasks()
	return memory, int64(most - now), err
}

// admit counts one more container, or says why the host has no room for it. The containers admitted last have not yet taken all
// they will. Each of them is counted with the average taken so far, or with the least that a container takes, whichever is greater.
func (h *hostRoom) admit() error {
	memory, threads, err := unused()
	if err != nil {
		return err
	}
	each := max(leastGuest, (h.memory-memory)/max(h.n, 1))
	tasks := max(leastThreads, (h.threads-threads)/max(h.n, 1))
	const pending = 8 // containers that may still be starting
	switch {
	case memory-min(h.n+1, pending)*each < h.keep:
		return &notebook.Error{Says: notebook.Say("no-memory", "left_mib", memory/notebook.MiB, "kept_mib", h.keep/notebook.MiB, "each_mib", each/notebook.MiB, "started", h.n)}
	case threads-min(h.n+1, pending)*tasks < keptThreads:
		return &notebook.Error{Says: notebook.Say("no-threads", "left", threads, "each", tasks, "started", h.n)}
	}
	h.n++
	return nil
}
