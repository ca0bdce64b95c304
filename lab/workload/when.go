package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// When says for which parameters something holds of a workload: always, never, or with some values of a parameter, as in "operation=write" or
// "sync=batch|group". Empty means that it is not known, or never where a key says so.
type When string

// These values do not depend on a parameter.
const (
	Always When = "always"
	Never  When = "never"
)

// check returns an error if the value of this key is wrong for a workload with these parameters.
func (w When) check(key string, params map[string]Param) error {
	if w == "" || w == Always || w == Never {
		return nil
	}
	name, values, ok := strings.Cut(string(w), "=")
	p, has := params[name]
	if !ok || !has {
		return fmt.Errorf("%s: %q: must be always, never, or a parameter with its values, as in size=1|2 (parameters: %s)", key, w, list(slices.Sorted(maps.Keys(params))))
	}
	for v := range strings.SplitSeq(values, "|") {
		if !p.accepts(v) {
			return fmt.Errorf("%s: %s=%q: %s", key, name, v, p.allowed())
		}
	}
	return nil
}

// With reports whether it holds with these parameters, and whether that is known.
func (w When) With(params map[string]string) (holds, known bool) {
	switch w {
	case "":
		return false, false
	case Always, Never:
		return w == Always, true
	}
	name, values, _ := strings.Cut(string(w), "=")
	return slices.Contains(strings.Split(values, "|"), params[name]), true
}

// SharesWith reports whether guests that do the work with these parameters share a folder.
func (w *Workload) SharesWith(params map[string]string) bool {
	shares, _ := w.Shares.With(params)
	return shares
}
