package origin

import (
	"errors"
	"fmt"
	"strings"
)

// MaxWords bounds the words of one line.
const MaxWords = 4096

// Words splits a line as a POSIX shell does, at blanks, quotes and backslashes. It expands nothing: $, *, ~ and the like stand for
// themselves. It supports no comments, pipes or lists of commands; `sh -c '…'` runs those.
func Words(line string) (words []string, err error) {
	var s splitter
	for _, r := range line {
		if r == 0 {
			return nil, errors.New("a zero byte is not allowed")
		}
		s.take(r)
		if len(s.words) > MaxWords {
			return nil, fmt.Errorf("must have at most %d words", MaxWords)
		}
	}
	switch {
	case s.escaped:
		return nil, fmt.Errorf("%.80q ends in a backslash: write a character after it", line)
	case s.quote != 0:
		return nil, fmt.Errorf("%.80q has a %c without a second one; write both, or \\%[2]c for the character itself", line, s.quote)
	}
	s.end()
	return s.words, nil
}

// splitter is the state of splitting a line.
type splitter struct {
	words   []string
	word    strings.Builder
	begun   bool // a word has begun, which may be empty
	quote   rune // the open quote; 0: none
	escaped bool // the last character was a backslash
}

func (s *splitter) take(r rune) {
	switch {
	case s.escaped:
		s.escaped = false
		if s.quote == '"' && !strings.ContainsRune("$`\"\\\n", r) { // in double quotes a backslash before another character is itself
			s.word.WriteRune('\\')
		}
		if r != '\n' { // a backslash before a line break continues the line
			s.put(r)
		}
	case r == '\\' && s.quote != '\'':
		s.escaped = true
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.put(r)
	case r == '\'' || r == '"':
		s.quote, s.begun = r, true
	case r == ' ' || r == '\t' || r == '\n':
		s.end()
	default:
		s.put(r)
	}
}

func (s *splitter) put(r rune) {
	s.word.WriteRune(r)
	s.begun = true
}

// end ends the current word, if there is one.
func (s *splitter) end() {
	if s.begun {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.begun = false
}
