package engine

import "slices"

// Limitation is a part of the contract that an engine cannot keep. The engine's registration declares it, the doctor shows it with
// the engine's capability, and the conformance suite skips it by name.
type Limitation struct {
	Name string // one of the constants below
	Why  string // what happens instead
}

// Lacks reports whether the engine declares that it does not keep a part of the contract.
func (k Kind) Lacks(limitation string) bool {
	return slices.ContainsFunc(k.Limitations, func(l Limitation) bool { return l.Name == limitation })
}

// The limitations that an engine may declare.
const (
	NoOOMCount      = "no count of out-of-memory kills"
	EndsOutOfMemory = "a trial that is killed for lack of memory may end its guest"
	NoHostProcesses = "the guest's processes and CPUs are not the host's"
	NoFlush         = "what a guest syncs is not flushed to the host's disk"
	NoCPUTime       = "a trial's CPU time is not the host kernel's count"
)
