package engine

import (
	"fmt"

	"tare/notebook"
)

// UnsupportedError says that an engine, or this host, can never fulfil a request: the study leaves out the treatment and goes on.
// Any other error of Provision is a failure.
type UnsupportedError struct {
	Engine string // its platform, and its name where the platform has several engines: "bm", "cn with crun"
	What   string // the request: "0.5 cores"
	Why    string // why it is impossible, and what to do instead
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot give %s: %s", e.Engine, e.What, e.Why)
}

// Message is what a folder records about the error.
func (e *UnsupportedError) Message() *notebook.Message {
	return notebook.Say("unsupported", "engine", e.Engine, "what", e.What, "why", e.Why)
}
