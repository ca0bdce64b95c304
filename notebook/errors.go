package notebook

import (
	"errors"
	"strings"
)

// ErrorMessage is what an error says: its own Message if it has one, or its text. What an error says in addition to the one with a Message
// that it wraps is kept around that one. nil: there is no error.
func ErrorMessage(err error) *Message {
	if err == nil {
		return nil
	}
	var says interface {
		error
		Message() *Message
	}
	if !errors.As(err, &says) {
		return TextMessage(err.Error())
	}
	before, after, found := strings.Cut(err.Error(), says.Error())
	if !found || before+after == "" {
		return says.Message()
	}
	return Say("in-context", "before", before, "cause", says.Message(), "after", after)
}

// Error is an error that is told as a message. Its text is for a developer: whoever prints it has the sentence in package words.
type Error struct{ Says *Message }

// Error implements error.
func (e *Error) Error() string { return e.Says.String() }

// Message is what [ErrorMessage] makes of the error.
func (e *Error) Message() *Message { return e.Says }

// Several are messages one after the other; nil: there are none.
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

// Parts are the messages of which [Several] made this one, or the message itself. A text of a folder of the first format has its parts between
// semicolons.
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
