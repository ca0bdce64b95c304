package advise

import (
	"strings"
	"testing"
)

// Advice that rests on synced writes says of gVisor that it ignored them.
func TestAdviceOnIgnoredFlushes(t *testing.T) {
	for _, synced := range []bool{true, false} {
		l := newLab(8).add("bm", large, 4).add("cn/gvisor/pinned", large, 3)
		l.study.Syncs = map[string]bool{"ffmpeg": synced}
		out := text(t, read(t, Options{}, l.write(t)))
		if strings.Contains(strings.Join(strings.Fields(out), " "), "ignored flushes: this is not the cost of synced writes") != synced {
			t.Errorf("synced %v: %s", synced, out)
		}
	}
}
