//go:build linux

package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tare/lab/journal"
)

// What cannot be undone because an engine is gone is one line that says what to do when it comes back, and when it does not.
func TestWhatIsAbsentIsSaidWithWhatToDo(t *testing.T) {
	one := fmt.Errorf("journal: undo journal /state/journal/1.jsonl: %w: no answer at unix:///a; start it", journal.ErrUnreachable)
	said := absent(errors.Join(one, fmt.Errorf("docker-container b: %w", journal.ErrUnreachable)))
	if strings.Contains(said, "\n") {
		t.Errorf("several lines: %s", said)
	}
	for _, want := range []string{"/state/journal/1.jsonl", "start it; ", "run `tare clean`", "gone for good, remove the journal"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s\nlacks %q", said, want)
		}
	}
}
