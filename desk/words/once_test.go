package words

import (
	"slices"
	"testing"
)

func TestOnce(t *testing.T) {
	lines := []string{"a. R", "b.", "c. R", "d."}
	if once(lines, " R"); !slices.Equal(lines, []string{"a.", "b.", "c. R", "d."}) {
		t.Errorf("%q", lines)
	}
}
