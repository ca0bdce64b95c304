package data

import (
	"strings"
	"testing"

	"tare/notebook"
)

// A reference that a study does not measure on its host is refused before the run. All CPUs that the host has can be said as a number.
func TestReferenceIsCheckedBeforeTheRun(t *testing.T) {
	h := notebook.Host{CPUs: make([]notebook.CPU, 2)}
	small := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	s := notebook.Study{Name: "quick", Treatments: []notebook.Treatment{
		{ID: "bm", Workload: "cpu", Platform: notebook.BM, Instance: small},
		{ID: "aa", Workload: "cpu", Platform: notebook.BM, Instance: small, AA: true},
		{ID: "cn", Workload: "cpu", Platform: notebook.CN, Engine: "docker", Provisioning: notebook.Vanilla, Instance: small},
		{ID: "vm", Workload: "cpu", Platform: notebook.VM, Engine: "qemu", Accelerator: notebook.TCG, Provisioning: notebook.Pinned, Instance: small},
	}}
	for text, want := range map[string]string{
		"":                          "",
		"cn:quota":                  "",
		"cn:docker:quota":           "",
		"cn,host_cores=2":           "",
		"cn,host_cores=1":           "measures no such environment",
		"bm":                        "",
		"cn:set":                    "the study quick measures no such environment; name one of: ",
		"vm":                        "measures no such environment", // emulated
		"cn,instance=1/1GB":         "",
		"cn,instance=4/4GB":         "measures no such environment",
		"cn,nonsense=1":             `unknown key "nonsense"`,
		"cn:docker:quota,millions=": `unknown key "millions"`,
	} {
		keys, err := notebook.ParseReference(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckReference(s, h, keys); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
