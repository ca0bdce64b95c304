//go:build linux

package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestChangesKeepWhatCannotBeUndone(t *testing.T) {
	state := t.TempDir()
	j, err := Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var order []string
	broken := true
	c := NewChanges(j, map[string]Undo{"thing": func(_ context.Context, e Entry) error {
		order = append(order, e.Target)
		if e.Target == "b" && broken {
			return errors.New("stuck")
		}
		return nil
	}})
	for _, target := range []string{"a", "b", "c"} {
		if err := c.Announce(Entry{Kind: "thing", Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Announce(Entry{Kind: "unknown", Target: "x"}); err == nil {
		t.Error("a change that nobody can undo was announced")
	}
	if err := c.Undo(t.Context()); err == nil || !strings.Contains(err.Error(), "thing b: stuck") {
		t.Errorf("Undo: %v, want an error that names b", err)
	}
	broken = false
	if err := c.Undo(t.Context()); err != nil {
		t.Errorf("Undo again: %v", err)
	}
	if want := []string{"c", "b", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("undone in the order %q, want %q", order, want)
	}
}
