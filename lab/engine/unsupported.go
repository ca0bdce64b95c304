package engine

import (
	"fmt"

	"tare/notebook"
)

// UnsupportedError says that an engine, or this host, can never make what is asked for: the treatment is left out and
// the study goes on. Any other error of Provision is a failure.
type UnsupportedError struct {
	Engine string // its platform, and its name where the platform has several: "bm", "cn with crun"
	What   string // was asked for: "0.5 cores"
	Why    string // it cannot be, and what can be done instead
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot give %s: %s", e.Engine, e.What, e.Why)
}

// Message is what a folder records of the error.
func (e *UnsupportedError) Message() *notebook.Message {
	return notebook.Say("unsupported", "engine", e.Engine, "what", e.What, "why", e.Why)
}
