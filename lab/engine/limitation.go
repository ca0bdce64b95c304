package engine

// Limitation is a part of the contract that an engine cannot keep. It is declared with the engine's registration, shown
// with its capability, and skipped under its name by the conformance suite.
type Limitation struct {
	Name string // one of those below: what is not so
	Why  string // and what is so instead
}

// The parts of the contract that an engine may declare not to keep.
const (
	NoOOMCount      = "what the kernel killed for memory is counted"
	NoHostProcesses = "what runs in the guest is a process of the host, on CPUs with the host's numbers"
	NoCPUTime       = "a trial's CPU time is what the host's kernel counts"
)
