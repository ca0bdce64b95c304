package notebook

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Message is what the laboratory has to say about a trial, a guest, a treatment or a session: why it failed, why it was left out, a
// warning, a note. It holds no sentence. Package words has the sentence of each code, and a kind of study has the sentences of its own codes.
type Message struct {
	Code string         `json:"code"`
	Args map[string]any `json:"args,omitempty"` // by name: a string, a float64, a bool, a list of strings, or another *Message, whose text is a string if it has the code CodeText
}

// CodeText is the code of a text that Tare did not write: the words of a program, an engine or the kernel, and all texts of folders of the
// first format.
const CodeText = "text"

// Say makes a Message from a code and its arguments, given as alternating names and values. Whole numbers become float64, a duration becomes seconds,
// an error becomes a message (see [ErrorMessage]), and a nil argument stays nil. Other types of arguments, and a name without a value, are
// mistakes in the program: Say panics.
func Say(code string, args ...any) *Message {
	s := &Message{Code: code}
	for i := 0; i < len(args); i += 2 {
		if s.Args == nil {
			s.Args = map[string]any{}
		}
		s.Args[args[i].(string)] = argument(args[i+1])
	}
	return s
}

// argument converts a value to the type that it has when it is read from a folder.
func argument(v any) any {
	switch v := v.(type) {
	case nil, string, bool:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v) // JSON has no infinity and no NaN
		}
		return v
	case time.Duration:
		return v.Seconds()
	case []string:
		return slices.Clone(v)
	case *Message:
		switch {
		case v == nil:
			return nil
		case v.Is(CodeText):
			return v.Text() // as when it is read from a folder
		}
		return v
	case error:
		return argument(ErrorMessage(v))
	}
	panic(fmt.Sprintf("notebook: %T cannot be an argument of what is said", v))
}

// TextMessage is a Message of a text from outside; nil if the text is empty.
func TextMessage(text string) *Message {
	if text == "" {
		return nil
	}
	return Say(CodeText, "text", text)
}

// Is reports whether the message has the code. It is false for nil.
func (s *Message) Is(code string) bool { return s != nil && s.Code == code }

// Text is the text of a Message that holds one from outside; "" otherwise.
func (s *Message) Text() string {
	if !s.Is(CodeText) {
		return ""
	}
	text, _ := s.Args["text"].(string)
	return text
}

// String gives the code and its arguments, for a developer to read. Text from outside stands as it is. nil gives "".
func (s *Message) String() string {
	switch {
	case s == nil:
		return ""
	case s.Is(CodeText):
		return s.Text()
	}
	var b strings.Builder
	b.WriteString(s.Code)
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		fmt.Fprintf(&b, " %s=%v", name, s.Args[name])
	}
	return b.String()
}

// Equal says whether two are the same, or both nil.
func (s *Message) Equal(o *Message) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.String() == o.String() && s.Code == o.Code
}

// MarshalJSON writes a code with its arguments, and a text from outside as a string.
func (s *Message) MarshalJSON() ([]byte, error) {
	if text, is := s.Args["text"].(string); is && s.Code == CodeText && len(s.Args) == 1 {
		return json.Marshal(text)
	}
	type plain Message
	return json.Marshal((*plain)(s))
}

// UnmarshalJSON reads a code with its arguments, or a text, as in folders of the first format.
func (s *Message) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*s = Message{Code: CodeText, Args: map[string]any{"text": text}}
		return nil
	}
	type plain Message
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	readAll(s.Args)
	return nil
}

// readAll converts a message's arguments with read, in place.
func readAll(args map[string]any) {
	for name, v := range args {
		args[name] = read(v)
	}
}

// read converts an argument from JSON to the type that Say gives it.
func read(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]string, 0, len(v))
		for _, e := range v {
			text, is := e.(string)
			if !is {
				text = fmt.Sprint(e)
			}
			list = append(list, text)
		}
		return list
	case map[string]any:
		code, _ := v["code"].(string)
		args, _ := v["args"].(map[string]any)
		readAll(args)
		return &Message{Code: code, Args: args}
	}
	return v
}
