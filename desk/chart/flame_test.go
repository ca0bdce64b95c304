package chart

import "testing"

// A name without its package is shown where there is no room for the whole, and none where not even its beginning says anything.
func TestCalled(t *testing.T) {
	const name = "github.com/docker/docker/daemon.(*Daemon).containerStart"
	for _, c := range []struct {
		room float64
		want string
	}{{400, name}, {150, "daemon.(*Daemon).containerStart"}, {120, "(*Daemon).containerStart"}, {60, "(*Daemon).co…"}, {6, ""}} {
		if got := called(name, c.room); got != c.want {
			t.Errorf("in %g points: %q, want %q", c.room, got, c.want)
		}
	}
}
