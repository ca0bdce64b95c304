package engine

// Lack is a part of the contract that an engine cannot keep. It is declared by the driver, shown with the engine's
// capability, and skipped under its name by the conformance suite.
type Lack struct {
	Name string // one of those below: what is not so
	Why  string // and what is so instead
}

// Lacking is a driver that declares what it lacks of the contract; one that does not say keeps it all.
type Lacking interface {
	Driver
	Lacks() []Lack
}

// The parts of the contract that an engine may lack.
const (
	LackOOMCount      = "what the kernel killed for memory is counted"
	LackHostProcesses = "what runs in the guest is a process of the host, on CPUs with the host's numbers"
	LackCPUTime       = "a trial's CPU time is what the host's kernel counts"
)
