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
