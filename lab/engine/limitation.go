package engine

import "slices"

// Limitation is a part of the contract that an engine cannot keep. It is declared with the engine's registration, shown
// with its capability, and skipped under its name by the conformance suite.
type Limitation struct {
	Name string // one of those below
	Why  string // what is so instead
}

// Lacks says whether the engine is declared not to keep a part of the contract.
func (k Kind) Lacks(limitation string) bool {
	return slices.ContainsFunc(k.Limitations, func(l Limitation) bool { return l.Name == limitation })
}

// The limitations that an engine may declare.
const (
	NoOOMCount      = "no count of out-of-memory kills"
	NoHostProcesses = "the guest's processes and CPUs are not the host's"
	NoFlush         = "what a guest syncs is not flushed to the host's disk"
	NoCPUTime       = "a trial's CPU time is not the host kernel's count"
)
