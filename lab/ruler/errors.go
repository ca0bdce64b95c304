package ruler

import (
	"errors"
	"fmt"

	"tare/notebook"
)

// The failures between the two ends. Every error of a Client is one of these (errors.Is), except those about its arguments and its
// context. After any of them the Client is unusable.
var (
	// ErrGone: the stream has ended, because the guest or its ruler died.
	ErrGone = errors.New("the guest's ruler is gone")
	// ErrProtocol: the guest sent something that no ruler of this version sends. The error is a *ProtocolError.
	ErrProtocol = errors.New("the guest's ruler does not keep the protocol")
	// ErrSilent: the guest did not answer within its time.
	ErrSilent = errors.New("the guest's ruler does not answer")
)

// ProtocolError says what came from the other end, and what the protocol allows instead.
type ProtocolError struct {
	Got, Expected string
}

// violation is a ProtocolError whose Got is formatted.
func violation(expected, got string, a ...any) error {
	return &ProtocolError{Got: fmt.Sprintf(got, a...), Expected: expected}
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%v: got %s; must be %s", ErrProtocol, e.Got, e.Expected)
}

// Is makes errors.Is(err, ErrProtocol) hold.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }

// CannotTell is the guest's answer that it cannot describe its memory. The Client remains usable.
type CannotTell struct{ Why string }

func (e *CannotTell) Error() string {
	return "the guest cannot tell what its memory contains: " + e.Why
}

// Message is the error in the form of a record.
func (e *CannotTell) Message() *notebook.Message {
	return notebook.Say("cannot-tell-memory", "why", e.Why)
}
