package notebook

import (
	"errors"
	"strings"
)

// Carrier is an error that carries a message.
type Carrier interface {
	error
	Message() *Message
}

// ErrorMessage returns an error's own Message, or its text if it has none. If the error wraps one with a Message, the text around that one
// is kept. It returns nil for nil.
func ErrorMessage(err error) *Message {
	if err == nil {
		return nil
	}
	var says Carrier
	if !errors.As(err, &says) {
		return TextMessage(err.Error())
	}
	before, after, found := strings.Cut(err.Error(), says.Error())
	if !found || before+after == "" {
		return says.Message()
	}
	return Say("in-context", "before", before, "cause", says.Message(), "after", after)
}

// Error is a [Carrier] that holds nothing else. Its text is for developers; package words has the sentence for users.
type Error struct{ Says *Message }

// Error implements error.
func (e *Error) Error() string { return e.Says.String() }

// Message is what [ErrorMessage] makes of the error.
func (e *Error) Message() *Message { return e.Says }

// Several joins messages in their order; nil if there are none.
func Several(all []*Message) *Message {
	var several *Message
	for i := len(all) - 1; i >= 0; i-- {
		if several == nil {
			several = all[i]
		} else {
			several = Say("and", "cause", all[i], "more", several)
		}
	}
	return several
}

// Parts are the messages that [Several] joined, or the message itself. In folders of the first format, semicolons separate the parts of a
// text.
func (s *Message) Parts() (all []*Message) {
	for s.Is("and") {
		first, _ := s.Args["cause"].(string)
		m, is := s.Args["cause"].(*Message)
		if !is {
			m = TextMessage(first)
		}
		all = append(all, m)
		more, _ := s.Args["more"].(string)
		if s, is = s.Args["more"].(*Message); !is {
			s = TextMessage(more)
		}
	}
	if s.Is(CodeText) {
		for text := range strings.SplitSeq(s.Text(), "; ") {
			all = append(all, TextMessage(text))
		}
		return all
	}
	if s != nil {
		all = append(all, s)
	}
	return all
}
