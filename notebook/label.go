package notebook

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Label names a workload with its parameters: "ffmpeg", or "ffmpeg{frames=24,segments=1}".
func Label(workload string, params map[string]string) string {
	if len(params) == 0 {
		return workload
	}
	return workload + "{" + Assignments(params, ",") + "}"
}

// Assignments writes parameters in the order of their names: "frames=24,segments=1".
func Assignments(params map[string]string, between string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		all = append(all, k+"="+params[k])
	}
	return strings.Join(all, between)
}

// Asked is the treatment as the study asks for it on every host. A parameter for which the study names only the least value (Lengths), and this host
// chose the value, has the least one and "or more". chosen are the chosen values, by parameter.
func (s Study) Asked(t Treatment) (asked Treatment, chosen map[string]string) {
	const mark = "\x00" // in no parameter
	for label, value := range s.Lengths {
		for name, v := range t.Params {
			if v != value {
				continue
			}
			other := t
			other.Params = maps.Clone(t.Params)
			other.Params[name] = mark
			before, after, _ := strings.Cut(other.Label(), mark)
			least, begins := strings.CutPrefix(label, before)
			if least, ends := strings.CutSuffix(least, after); begins && ends && least != value {
				other.Params[name] = least + " or more"
				return other, map[string]string{name: value}
			}
		}
	}
	return t, nil
}

// Image is what the treatment was run from: the image of its label, or of its workload.
func (s Study) Image(t Treatment) Image {
	if i, ok := s.Images[t.Label()]; ok {
		return i
	}
	return s.Images[t.Workload]
}

// Said says of each setting that was changed what it was changed from and to, with how many files it has: "address randomisation: 2 → 0".
func Said(all []Setting) (texts []string) {
	for len(all) > 0 {
		s, n := all[0], 0
		for n < len(all) && all[n].Name == s.Name {
			n++
		}
		text := s.Name + ": " + s.From + " → " + s.To
		if n > 1 {
			text += fmt.Sprintf(" (%d files)", n)
		}
		texts, all = append(texts, text), all[n:]
	}
	return texts
}
