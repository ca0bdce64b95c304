package advise

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A result that may come from the load's own CPUs is mentioned and decides nothing. With the load elsewhere it decides.
func TestALoadThatSharesCPUs(t *testing.T) {
	for _, from := range []string{"", "ssh://other"} {
		f := notebooktest.New(4).Add("shop bm 1/2GB", 4).Add("shop cn docker pinned 1/2GB", 4.2).Add("shop cn docker vanilla 1/2GB", 3)
		f.Study.LoadFrom = from
		f.Trial = func(x *notebook.Trial) {
			x.Load = &notebook.Load{From: from, CPUs: []int{1}, Shared: from == "" && strings.Contains(x.Treatment, "vanilla")}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Of(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := a.Rankings[0]
		if from != "" {
			if len(r.Choices) != 3 || len(r.Apart) != 0 || r.Choices[0].Treatment.Provisioning != notebook.Vanilla {
				t.Errorf("with the load elsewhere: %+v, apart %+v", r.Choices, r.Apart)
			}
			continue
		}
		if len(r.Choices) != 2 || len(r.Apart) != 1 || r.Apart[0].Treatment.Provisioning != notebook.Vanilla || r.Apart[0].Reason != (data.SharedLoad{}) {
			t.Errorf("with the load on the same CPUs: %+v, apart %+v", r.Choices, r.Apart)
		}
	}
}
