package notebook

import (
	"maps"
	"slices"
	"strings"
)

// Label names a workload with its parameters: "ffmpeg", or "ffmpeg{frames=24,segments=1}".
func Label(workload string, params map[string]string) string {
	if len(params) == 0 {
		return workload
	}
	var kv []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		kv = append(kv, k+"="+params[k])
	}
	return workload + "{" + strings.Join(kv, ",") + "}"
}

// Image is what the treatment was run from: the image of its workload with its parameters, or of its workload.
func (s Study) Image(t Treatment) Image {
	if i, ok := s.Images[Label(t.Workload, t.Params)]; ok {
		return i
	}
	return s.Images[t.Workload]
}
