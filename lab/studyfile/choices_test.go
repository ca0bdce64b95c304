package studyfile

import (
	"slices"
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

func TestParseExplain(t *testing.T) {
	got, err := ParseExplain("io,scheduler")
	if err != nil || !slices.Equal(got, []string{notebook.TracerScheduler, notebook.TracerIO}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ParseExplain(strings.Join(notebook.DefaultTracers, ",")); err != nil || !slices.Equal(got, notebook.DefaultTracers) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ParseExplain(ExplainDeep); err != nil || !slices.Equal(got, notebook.DeepTracers) {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"sheduler": `unknown tracer "sheduler"; the tracers are ` + strings.Join(notebook.TracerNames, ", "),
		"io,":      `unknown tracer ""; the tracers are ` + strings.Join(notebook.TracerNames, ", "),
		"io,io":    `io is named twice`,
	} {
		if _, err := ParseExplain(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func TestLoadMachine(t *testing.T) {
	for from, good := range map[string]bool{
		"ssh://other": true, "ssh://root@10.0.0.2:2222": true, "ssh://root@load.example.org": true,
		"other": false, "ssh://": false, "ssh://-oProxyCommand=x": false, "ssh://other/path": false, "ssh://a:b@other": false, "http://other": false, "ssh://a b": false,
	} {
		if err := checkFrom(from); (err == nil) != good {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// Mistakes in a study, and in the choices for it, are reported before anything is built.
func TestMistakesInChoices(t *testing.T) {
	for _, c := range []struct {
		use   Use
		input string
		want  string
	}{
		{Use{Name: "command", Image: "./none"}, "", "image ./none: stat ./none: no such file or directory"},
		{Use{Name: "command", Image: "An Image"}, "", `image An Image: "An Image" is not the name of an image, such as debian:trixie`},
		{Use{Name: "command", Command: []string{"cat"}, Input: "input"}, "none", "--input none: there is no such file"},
		{Use{Name: "command", Command: []string{"cat"}, Input: "input"}, ".", "--input .: must be a regular file"},
		{Use{Name: "command", Command: []string{"cat"}, Input: "input"}, "choices_test.go", ""},
	} {
		s := &Spec{Name: "bench", Workloads: []Use{c.use}, Platforms: []Place{{Platform: "bm"}}, Instances: []string{"1/1GB"}}
		if err := s.Complete(known); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := s.Ask(workloads.FS, Choices{Input: c.input}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
