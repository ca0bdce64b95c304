package engine

import "fmt"

// CannotError says that a platform, or this host, cannot make what a spec asks for, ever: the treatment is left out
// and the study goes on. Any other error of Provision is a failure.
type CannotError struct {
	Platform string // and engine: "bm", "cn with crun"
	What     string // was asked for: "0.5 cores"
	Why      string // it cannot be, and what can be done instead
}

func (e *CannotError) Error() string {
	return fmt.Sprintf("%s cannot give %s: %s", e.Platform, e.What, e.Why)
}
