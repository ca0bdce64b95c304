package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

type withMessage struct{}

func (withMessage) Error() string     { return "for people" }
func (withMessage) Message() *Message { return Say("for-folders", "n", 2) }

// A message read from a folder has the same types as when it was written, with the fast decoder too.
func TestMessagesThroughJSON(t *testing.T) {
	for _, s := range []*Message{
		Say("exit", "status", 3, "said", "no such file: \"x\"\n{"),
		Say("of-guest", "guest", int64(2), "cause", Say("exit", "status", 1, "said", "")),
		Say("slow", "after", 1500*time.Millisecond, "most", math.Inf(1), "all", []string{"a", "b"}, "sure", true, "none", nil, "cause", (*Message)(nil)),
		Say("bare"),
		TextMessage("the disk is full"),
		Say("because", "cause", fmt.Errorf("starting: %w", withMessage{}), "text", errors.New("no")),
	} {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Message
		if err := json.Unmarshal(line, &back); err != nil || !reflect.DeepEqual(&back, s) {
			t.Errorf("%s: %v %+v, want %+v", line, err, back, *s)
		}
		var fast Message
		if d := (decoder{b: line}); !takerOf(reflect.TypeFor[Message]())(&d, reflect.ValueOf(&fast).Elem()) || d.i != len(line) || !reflect.DeepEqual(&fast, s) {
			t.Errorf("%s: not taken the fast way, at byte %d: %+v", line, d.i, fast)
		}
		if !back.Equal(s) || back.Equal(Say("other")) || back.Equal(nil) {
			t.Errorf("%s: Equal", line)
		}
	}
}

func TestMessagesOfOlderFolders(t *testing.T) {
	var s Message
	if err := json.Unmarshal([]byte(`"exit status 3: no such file"`), &s); err != nil || s.Text() != "exit status 3: no such file" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, wrong := range []string{`3`, `[]`, `{"code":3}`, `{"args":[]}`} {
		if err := json.Unmarshal([]byte(wrong), &s); err == nil {
			t.Errorf("%s was read as %+v", wrong, s)
		}
	}
}

func TestErrorMessage(t *testing.T) {
	if s := ErrorMessage(nil); s != nil {
		t.Errorf("of no error: %v", s)
	}
	if s := ErrorMessage(fmt.Errorf("wrapped: %w", withMessage{})); !s.Equal(Say("in-context", "before", "wrapped: ", "cause", Say("for-folders", "n", 2), "after", "")) {
		t.Errorf("of an error that wraps one that says itself: %v", s)
	}
	if s := ErrorMessage(fmt.Errorf("%w", withMessage{})); !s.Is("for-folders") {
		t.Errorf("of an error that says itself: %v", s)
	}
	if s := ErrorMessage(errors.New("disk full")); s.Text() != "disk full" || s.String() != "disk full" {
		t.Errorf("of another error: %v", s)
	}
	if s := (*Message)(nil); s.Is("") || s.Text() != "" || s.String() != "" || !s.Equal(nil) {
		t.Error("nil says something")
	}
}

// Joined messages can be separated again, even after they were in a folder.
func TestPartsOfMessages(t *testing.T) {
	for _, all := range [][]*Message{nil, {Say("bare")}, {TextMessage("a"), TextMessage("b")}, {Say("bare"), TextMessage("b"), Say("exit", "status", 1)}} {
		line, err := json.Marshal(Several(all))
		var back *Message
		if err = errors.Join(err, json.Unmarshal(line, &back)); err != nil {
			t.Fatal(err)
		}
		if got := back.Parts(); !slices.EqualFunc(got, all, (*Message).Equal) {
			t.Errorf("%v, want %v", got, all)
		}
	}
	if got := TextMessage("no hits; no misses").Parts(); len(got) != 2 || got[1].Text() != "no misses" {
		t.Errorf("of a text of the first format: %v", got)
	}
}
