package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

type doc struct {
	Name   string            `yaml:"name"`
	List   []string          `yaml:"list"`
	Rounds rounds            `yaml:"rounds,omitempty"`
	Also   []rounds          `yaml:"also"`
	Names  map[string]string `yaml:"params"`
	Own    string            `yaml:"-"`
	Title  string
	more   `yaml:",inline"`
}

type rounds struct {
	Floor int     `yaml:"floor"`
	Cap   int     `yaml:"cap"`
	Share float64 `yaml:"share"`
	Quick bool    `yaml:"quick"`
}

type more struct {
	Kind  string   `yaml:"kind"`
	Kinds []string `yaml:"kinds"`
}

func (more) Allowed() map[string][]string {
	return map[string][]string{"kind": {"a", "b"}, "kinds": {"c", "d"}}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"name: a": "", "kind: b\nkinds: [c, d]": "", "kind: c": "kind c [a b]", "kinds: [c, b]": "kinds b [c d]", `kinds: [""]`: "kinds  [c d]",
	} {
		var d doc
		if err := Decode("f.yaml", []byte(text), &d); err != nil {
			t.Fatal(err)
		}
		key, value, allowed := Refused(d)
		if got := fmt.Sprint(key, " ", value, " ", allowed); got != want && (want != "" || key != "") {
			t.Errorf("%q: %s, want %q", text, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	var d doc
	if err := Decode("f.yaml", []byte("name: a\nlist: [b, c]\n"), &d); err != nil || d.Name != "a" || len(d.List) != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	for text, want := range map[string]string{
		"":                                 "f.yaml: is empty",
		"name: a\nnames: b":                "f.yaml:2: unknown key names: did you mean name? The keys here are name, list, rounds, also, params, title, kind, kinds",
		"name: a\ncolour: b":               "f.yaml:2: unknown key colour: the keys here are name, list, rounds, also, params, title, kind, kinds",
		"rounds: {flor: 3}":                "f.yaml:1: unknown key flor: did you mean floor? The keys here are floor, cap, share, quick",
		"also:\n- floor: 2\n- cpa: 3":      "f.yaml:3: unknown key cpa: did you mean cap? The keys here are floor, cap, share, quick",
		"name: a\nlist: {a: b}":            "f.yaml:2: keys with values: must be a list",
		"name: a\nlist: 5\nfoo: 2":         `f.yaml:2: "5": must be a list`,
		"rounds: {floor: two}":             `f.yaml:1: "two": must be a whole number`,
		"rounds: {floor: [2]}":             "f.yaml:1: a list: must be a whole number",
		"rounds: {share: a \"few\" or so}": `f.yaml:1: "a \"few\"...": must be a number`,
		"rounds: {quick: maybe}":           `f.yaml:1: "maybe": must be true or false`,
		"rounds: 5":                        `f.yaml:1: "5": must be {floor: …, cap: …, share: …, quick: …}`,
		"name: [a]":                        "f.yaml:1: a list: must be text",
		"params: [a]":                      "f.yaml:1: a list: must be keys with values, {KEY: …}",
		"a: [":                             "f.yaml:2: did not find expected node content",
		"name: \x00":                       "f.yaml: control characters",
		strings.Repeat("#", 2<<20):         "at most 1048576 are allowed",
	} {
		if err := Decode("f.yaml", []byte(text), &doc{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "foo") {
			t.Errorf("%.40q: %v, want one line with %q", text, err, want)
		}
	}
}

func TestLine(t *testing.T) {
	text := []byte("name: a\nlist:\n- b\n- c\n")
	for _, c := range []struct {
		path []any
		want string
	}{
		{[]any{"name"}, ":1"}, {[]any{"list", 1}, ":4"}, {[]any{"list", 9}, ":2"}, {[]any{"none"}, ""}, {nil, ""}, {[]any{"name", "deeper"}, ":1"},
	} {
		if got := Line(text, c.path...); got != c.want {
			t.Errorf("%v: %q, want %q", c.path, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name: a", "a: &a [*a]", "list: [[1]]", "name: x\n\t- y", "? [a]\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := Decode("f.yaml", text, &doc{}); err != nil && !strings.HasPrefix(err.Error(), "f.yaml") {
			t.Errorf("no file in %q", err)
		}
		_ = Line(text, "list", 0, "a")
	})
}

func ExampleDecode() {
	var study struct {
		Name   string `yaml:"name"`
		Rounds int    `yaml:"rounds"`
	}
	fmt.Println(Decode("mine.yaml", []byte("name: mine\nround: 5\n"), &study))
	fmt.Printf("mine.yaml%s: rounds: 0: must be from 1 to 100\n", Line([]byte("name: mine\nrounds: 0\n"), "rounds"))
	// Output:
	// mine.yaml:2: unknown key round: did you mean rounds? The keys here are name, rounds
	// mine.yaml:2: rounds: 0: must be from 1 to 100
}
