//go:build linux

package live

import (
	"maps"
	"strings"
	"testing"
)

// podmans is a list as Podman keeps it, dockers one as Docker answers.
const (
	podmans = `[{"id":"0a","names":["web"],"image":"f1","layer":"2b","metadata":"{}","created":"2026-11-25T08:00:00Z"},{"id":"0b","names":["db","also-db"]}]`
	dockers = `[{"Id":"0c","Names":["/cache"],"State":"running"},{"Id":"0d","Names":[]},{"Id":"0e","Names":["/"]},{"Id":"0f"}]`
)

// A container without a name in its engine's list is known by its id.
func TestNamed(t *testing.T) {
	for list, want := range map[string]map[string]string{
		podmans: {"0a": "web", "0b": "db"}, dockers: {"0c": "cache"}, `[null]`: {}, `{}`: nil, ``: nil,
		strings.Repeat(" ", mostListed) + podmans: nil,
	} {
		if got := listed([]byte(list)); !maps.Equal(got, want) {
			t.Errorf("%.200q: %v, want %v", strings.TrimSpace(list), got, want)
		}
	}
}

// FuzzNamed reads an engine's list of containers: no container loses its name to an empty one.
func FuzzNamed(f *testing.F) {
	for _, list := range []string{podmans, dockers, `[null]`, `[{"id":1}]`, `[{"id":"a","names":null}]`, `[`} {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		for id, name := range listed(list) {
			if name == "" {
				t.Errorf("%q has no name", id)
			}
		}
	})
}
