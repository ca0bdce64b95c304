package ruler

import (
	"errors"
	"fmt"

	"tare/notebook"
)

// What can go wrong between the two ends. Every error of a Client, other than one about its arguments and that
// of its context, is one of these (errors.Is). After any of the three the Client is of no more use.
var (
	// ErrGone: the stream ended; the guest, or the ruler in it, died.
	ErrGone = errors.New("the guest's ruler is gone")
	// ErrProtocol: the guest sent what no ruler of this version sends. The error is a *ProtocolError.
	ErrProtocol = errors.New("the guest's ruler does not keep the protocol")
	// ErrSilent: the guest did not answer although it had more than the time it was given.
	ErrSilent = errors.New("the guest's ruler does not answer")
)

// ProtocolError says what came from the other end and what was expected instead.
type ProtocolError struct {
	Got, Expected string
}

// violation is a ProtocolError whose Got is in the words of a format.
func violation(expected, got string, a ...any) error {
	return &ProtocolError{Got: fmt.Sprintf(got, a...), Expected: expected}
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%v: got %s, expected %s", ErrProtocol, e.Got, e.Expected)
}

// Is makes errors.Is(err, ErrProtocol) hold.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }

// CannotTell is the guest's word that it cannot say what its memory is. The Client remains good.
type CannotTell struct{ Why string }

func (e *CannotTell) Error() string { return "the guest cannot tell what its memory is: " + e.Why }

// Message is the error as a record has it.
func (e *CannotTell) Message() *notebook.Message {
	return notebook.Say("cannot-tell-memory", "why", e.Why)
}
