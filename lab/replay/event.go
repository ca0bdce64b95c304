// Package replay simulates the recorded threads of a target under another CPU limit or on other CPUs. What each thread did, and what it waited
// for, stays as recorded. When each thread can run follows from the scheduler's rules.
package replay

import "time"

// Kind is what an Event says.
type Kind uint8

// Kinds of events.
const (
	Enters  Kind = iota // a thread enters a CPU: State is its state until now, Wait what it waited for
	Leaves              // a thread leaves a CPU: State is its state from now on, Value its CPU time so far in ns
	Wakes               // a thread is woken: Value is the thread of the target that wakes it; 0: something else
	Arrives             // bytes come to a connection, the one that Value identifies
	Takes               // a thread takes bytes from the connection Value
	Sends               // a thread gives bytes to the connection Value
	Others              // a thread that is not the target's leaves a CPU, on which it was for Value ns
)

// State is a thread's state while it is not on a CPU.
type State uint8

// States of threads.
const (
	Unknown State = iota
	New
	Waits
	Ready
	Throttled
	Ended
)

// Event is one event of a timeline.
type Event struct {
	At     time.Duration // by the monotonic clock
	Value  uint64
	Thread int32
	CPU    uint16
	Kind   Kind
	State  State
	Wait   string // of Enters after Waits: one of notebook.Wall…
}
