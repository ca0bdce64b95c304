package data

import (
	"slices"
	"strings"
	"testing"

	"tare/notebook"
)

// Messages that differ only in numbers are of one kind, even if the numbers are in nested messages or in texts from outside.
func TestMessagesAreGroupedByCodeAndArguments(t *testing.T) {
	say := notebook.Say
	exit := func(status int, said string) *notebook.Message { return say("exit", "status", status, "said", said) }
	var x texts
	for _, m := range []*notebook.Message{
		exit(3, "page 7 of 9"), exit(4, "page 12 of 9"), exit(3, "no page"),
		say("of-guest", "guest", 1, "cause", exit(3, "")), say("of-guest", "guest", 20, "cause", exit(5, "")), say("of-guest", "guest", 1, "cause", say("no-address")),
		say("signal", "status", 3, "said", "page 7 of 9"),
		notebook.TextMessage("exit status 3"), notebook.TextMessage("exit status 1.5"),
	} {
		x.add(ofTrial, m, "")
	}
	var counts []int
	for _, e := range x.all {
		counts = append(counts, e.count)
		if e.Differs != (e.count > 1) {
			t.Errorf("%v: differs %v", e.First, e.Differs)
		}
	}
	if want := []int{2, 1, 2, 1, 1, 2}; !slices.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
}

// Each part of a message from a folder is bounded, and Tare's own messages fit into the bounds.
func TestMessagesAreBounded(t *testing.T) {
	m := notebook.TextMessage("no cgroups")
	for range maxDepth {
		m = notebook.Say("no-guest", "cause", m)
	}
	if b := Bounded(m); !b.Equal(m) {
		t.Errorf("%v, want %v", b, m)
	}
	for range 1000 {
		m = notebook.Say("no-guest", "cause", m, "text", strings.Repeat("x", 10*maxText))
	}
	if n := len(Bounded(m).String()); n > 2*maxDepth*maxText {
		t.Errorf("%d bytes are left of %d", n, len(m.String()))
	}
}

// A message with few arguments can hold very many when each is another message, or a list.
func TestMessagesAreBoundedAsAWhole(t *testing.T) {
	wide := notebook.Say("no-guest", "why", slices.Repeat([]string{strings.Repeat("x", maxText)}, maxArgs))
	for range 3 {
		m := &notebook.Message{Code: "no-guest", Args: map[string]any{}}
		for i := range maxArgs {
			m.Args[string(rune('a'+i))] = wide
		}
		wide = m
	}
	if n := len(Bounded(wide).String()); n > 2*maxValues*maxText {
		t.Errorf("%d bytes are left", n)
	}
}

// A damaged folder may have null among its warnings and notes.
func TestNoMessageIsNotCounted(t *testing.T) {
	var x texts
	x.add(ofTrial, nil, "a")
	if len(x.all) > 0 || x.dropped > 0 {
		t.Errorf("%d counted, %d dropped", len(x.all), x.dropped)
	}
}
