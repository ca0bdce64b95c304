//go:build linux

package schemas

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	shippedclaims "tare/claims"
	"tare/desk/claims"
	"tare/internal/golden"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/studies"
	"tare/workloads"
)

func TestSchemasAreOfTheTypes(t *testing.T) {
	for name, got := range generate(t) {
		golden.Check(t, "../"+name+".json", got)
	}
}

// valid checks a file against the schema of this name.
func valid(t *testing.T, name, file string) error {
	t.Helper()
	text, err := fs.ReadFile(FS, name+".json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal([]byte(file), &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// read reads a file as Tare does.
func read(name, file string) (err error) {
	switch name {
	case "study":
		_, err = studyfile.Parse("a file", []byte(file), ".", session.Known)
	case "workload":
		_, err = workload.Read(fstest.MapFS{workload.File: {Data: []byte(file)}}, "a file")
	case "claims":
		_, err = claims.Parse("a file", []byte(file))
	}
	return err
}

func TestShippedFilesAreValid(t *testing.T) {
	for name, files := range map[string]struct {
		fs.FS
		pattern string
		least   int
	}{"study": {studies.FS, "*.yaml", 20}, "workload": {workloads.FS, "*/" + workload.File, 30}, "claims": {shippedclaims.FS, "*.yaml", 4}} {
		names, err := fs.Glob(files, files.pattern)
		if err != nil || len(names) < files.least {
			t.Fatalf("%s: only %q: %v", name, names, err)
		}
		for _, file := range names {
			text, err := fs.ReadFile(files, file)
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(t, name, string(text)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// sample is a small valid file of each kind.
var sample = map[string]string{
	"study":    "name: mine\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}, {platform: cn}]\ninstances: [1/1GB]\n",
	"workload": "name: mine\nimage: {suite: trixie}\nmetric: {name: time, unit: s}\ncommand: [sleep, 1]\n",
	"claims": "paper: P\ngroups:\n- name: G\n  claims:\n  - {id: a, place: P, finding: F, tolerance: T, hypothesis: " +
		"{ratio: {of: {workload: cpu, platform: cn}, higher: 2%}}}\n",
}

// Tare refuses the files that the schema refuses.
func TestWrongFilesAreNotValid(t *testing.T) {
	for name, file := range sample {
		if err := read(name, file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := valid(t, name, file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	type change struct{ of, from, to string }
	changes := []change{
		{"study", "name: mine", "nam: mine"}, {"study", "name: mine", "title: mine"}, {"study", "[{name: cpu}]", "cpu"}, {"study", "{name: cpu}", "{}"},
		{"study", "platform: cn", "platform: lxd"}, {"study", "platform: cn", "platform: cn, provisioning: [quota]"},
		{"study", "platform: cn", "platform: cn, engines: [kata]"}, {"study", "platform: cn", "platform: cn, networks: [wifi]"},
		{"study", "platform: bm", "platform: bm, other_cpus: away"}, {"study", "name: cpu", "name: cpu, rounds: few"}, {"study", "name: cpu", "name: cpu, neighbours: {disk: 1}"},
		{"study", "instances", "figures: [{name: F, title: T, workload: cpu, by: instance, published_of: quota}]\ninstances"},
		{"study", "instances", "paging: {steady: 2m, addresses: [none]}\ninstances"}, {"study", "instances", "arrivals: {most: 3}\ninstances"},
		{"workload", "suite", "suit"}, {"workload", "unit: s", "better: lower"}, {"workload", "unit: s", "unit: s, better: more"}, {"workload", "command", "output: xml\ncommand"},
		{"workload", "[sleep, 1]", "{sleep: 1}"}, {"workload", "command", "service: {command: [a]}\ncommand"},
		{"claims", "paper", "Paper"}, {"claims", "higher", "highest"}, {"claims", "2%", "0.02"}, {"claims", "place: P, ", ""},
		{"claims", "platform: cn", "platform: cm"}, {"claims", "higher", "sizes: big, higher"}, {"claims", "platform: cn", "platform: cn, network: [bridge, wifi]"},
	}
	for _, k := range session.Known.Kinds.Names(nil) {
		changes = append(changes, change{"study", "instances", k + ": {no_such_key: 1}\ninstances"})
	}
	for _, c := range changes {
		file := strings.Replace(sample[c.of], c.from, c.to, 1)
		if err := read(c.of, file); err == nil || !strings.HasPrefix(err.Error(), "a file") {
			t.Errorf("%s with %q: Tare says %v", c.of, c.to, err)
		}
		if valid(t, c.of, file) == nil {
			t.Errorf("%s with %q is valid by the schema", c.of, c.to)
		}
	}
}
