package studyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/workload"
	"tare/workloads"
)

func settingOf(t *testing.T, uses string) (*Asked, error) {
	t.Helper()
	s, err := Parse("mine.yaml", []byte("name: mine\nworkloads: "+uses+"\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\ncapacity: {objective: p99=50ms}\ndesign: {trials: 1}\n"), t.TempDir(), known)
	if err != nil {
		return nil, err
	}
	return s.Ask(workloads.FS, Choices{})
}

// A study file sets what a service gets in addition to its image. Mistakes are refused when it is read.
func TestMistakesInSettings(t *testing.T) {
	for uses, want := range map[string]string{
		"[{name: web, image: x, service: 80, load: /, env: [A=1], dir: /srv, user: app, volumes: [./a:/a], prepare: [true], request: {method: PUT, headers: ['A: b'], body: x}}]": "",
		"[{name: http, env: [A=1]}]":                                                                                          "env: is only for a command or an image of your own",
		"[{name: web, image: x, service: 80, load: /, env: [A]}]":                                                             `env: "A": must be KEY=VALUE`,
		"[{name: web, image: x, service: 80, load: /, dir: srv}]":                                                             `dir: "srv": must be an absolute path`,
		"[{name: web, image: x, service: 80, load: /, volumes: ['./a']}]":                                                     "volumes: volume",
		"[{name: web, image: x, service: 80, load: /, request: {method: get}}]":                                               "method",
		"[{name: web, image: x, service: 80, load: /, request: {headers: [A]}}]":                                              `request: headers: "A": must be 'Name: value'`,
		"[{name: web, image: x, service: 80, load: /, request: {headers: ['A: 1', 'a: 2']}}]":                                 "request: headers: a is named twice: name it once",
		"[{name: web, image: x, service: 80, load: /, request: {headers: ['content-length: 1']}}]":                            "the load sets this header itself",
		"[{name: web, image: x, service: 80, load: /, request: {headers: [\"A: 1\\r\\nB: 2\"]}}]":                             "request: headers: A: the value must be one line of text",
		"[{name: web, image: x, service: 80, load: /, request: {body: a, body_file: b}}]":                                     "only one of them is allowed",
		"[{name: web, image: x, service: 80, load: [ask, '{rate}'], request: {method: PUT}}]":                                 "request: is only for a service whose load: is the path of a page",
		"[{name: web, image: x, service: 80, load: /, request: {body_file: none}}]":                                           "body of the request: open ",
		"[{name: web, image: x, service: 80, load: /}, {name: web, image: x, service: 80, load: /, env: [A=1]}]":              "another command has this name and differs in its image, environment or volumes",
		"[{name: web, image: x, service: 80, load: /}, {name: web, image: x, service: 80, load: /, request: {method: POST}}]": "",
	} {
		_, err := settingOf(t, uses)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", uses, err, want)
		}
	}
}

// The request is a file of the load, and its part of a treatment's name is short.
func TestRequest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "body"), []byte("{}\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Request{Headers: Values{"Content-Type: application/json"}, BodyFile: "body"}
	w, err := workload.Find(workloads.FS, HTTP, ".")
	if err == nil {
		err = r.putInto(w, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.brief(); !strings.HasPrefix(got[0], "POST#") || len(got[0]) > 12 {
		t.Error(got)
	}
	if got := (&Request{Method: "HEAD"}).brief(); got[0] != "HEAD" {
		t.Error(got)
	}
}

// The environment, the folder and the user are part of a study's identity.
func TestSettingIsInTheHash(t *testing.T) {
	seen := map[string]string{}
	for _, more := range []string{"", ", env: [A=1]", ", env: [A=2]", ", dir: /srv", ", user: app", ", prepare: [a]", ", request: {method: PUT}", ", request: {body: x}"} {
		a, err := settingOf(t, "[{name: web, image: x, service: 80, load: /"+more+"}]")
		if err != nil {
			t.Fatal(err)
		}
		h := hash(a.Spec.Workloads)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q are the same study", more, other)
		}
		seen[h] = more
	}
}
