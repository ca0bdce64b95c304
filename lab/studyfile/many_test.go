package studyfile

import (
	"fmt"
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

// Combinations of parameters multiply. A study with more configurations than a folder may have is refused before Tare makes them all.
func TestCombinationsAreBounded(t *testing.T) {
	values := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i + 1)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	text := "name: many\nworkloads:\n  - name: fileserver\n    params: {files: " + values(900) + ", threads: " + values(900) + ", rounds: " + values(900) + "}\nplatforms: [{platform: bm}, {platform: cn, engines: [crun]}]\ninstances: [1/1GB]\n"
	s, err := Parse("many.yaml", []byte(text), ".", Known{withKernels(), known.Kinds})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.works(workloads.FS); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("810000 combinations; a study may have at most %d configurations", notebook.MaxTreatments)) {
		t.Errorf("%v", err)
	}
}
