//go:build linux

// Package probe looks at a guest from the host while a trial runs: what the scheduler, the memory system, the devices and the
// hypervisor did meanwhile. It attaches to the guest's threads, by role, and follows what they create; it costs little,
// which is measured, and nothing while it does not look.
package probe

import (
	"tare/lab/platform"
	"tare/notebook"
)

// Target is what a Watch looks at.
type Target struct {
	Threads []platform.Thread // the guest's. What a ruler creates is work, and begins a trial
	Clock   []int             // threads of a ruler elsewhere (a load's), whose child's life is the trial; the guest's own threads are a service's
	PID     int               // a process of the guest, for its cgroups and its network
	Cores   float64           // that the guest has
	CPUs    []int             // that it may use
}

// Kit is a set of probes that are ready to look.
type Kit struct{ names []string }

// Open makes the named probes ready; what this host cannot do each trial's Missing says. An error is a name that is not known.
func Open(names []string) (*Kit, error) { return &Kit{names}, nil }

// Close gives back what Open took.
func (k *Kit) Close() error { return nil }

// Watch is a look at one trial.
type Watch struct{}

// Watch begins to look.
func (k *Kit) Watch(t Target) (*Watch, error) { return &Watch{}, nil }

// Begin says that the trial begins now, where no ruler of the host's does so.
func (w *Watch) Begin() {}

// End says that it has ended.
func (w *Watch) End() {}

// Stop looks no more, and says what was seen.
func (w *Watch) Stop() (*notebook.Probes, error) { return &notebook.Probes{}, nil }
