package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Syncs says whether a workload's results depend on writes that it syncs (fsync, fdatasync, O_SYNC): always, never, or with some values of a
// parameter, as in "operation=write" or "sync=batch|group". Empty means unknown.
type Syncs string

// These values do not depend on a parameter.
const (
	AlwaysSyncs Syncs = "always"
	NeverSyncs  Syncs = "never"
)

// check returns an error if s is wrong for a workload with these parameters.
func (s Syncs) check(params map[string]Param) error {
	if s == "" || s == AlwaysSyncs || s == NeverSyncs {
		return nil
	}
	name, values, ok := strings.Cut(string(s), "=")
	p, has := params[name]
	if !ok || !has {
		return fmt.Errorf("syncs: %q: must be always, never, or a parameter with its values, as in size=1|2 (parameters: %s)", s, list(slices.Sorted(maps.Keys(params))))
	}
	for v := range strings.SplitSeq(values, "|") {
		if !p.accepts(v) {
			return fmt.Errorf("syncs: %s=%q: %s", name, v, p.allowed())
		}
	}
	return nil
}

// With reports whether the results depend on synced writes with these parameters, and whether that is known.
func (s Syncs) With(params map[string]string) (synced, known bool) {
	switch s {
	case "":
		return false, false
	case AlwaysSyncs, NeverSyncs:
		return s == AlwaysSyncs, true
	}
	name, values, _ := strings.Cut(string(s), "=")
	return slices.Contains(strings.Split(values, "|"), params[name]), true
}
