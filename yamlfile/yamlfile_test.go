package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

type doc struct {
	Name string   `yaml:"name"`
	List []string `yaml:"list"`
}

func TestDecode(t *testing.T) {
	var d doc
	if err := Decode("f.yaml", []byte("name: a\nlist: [b, c]\n"), &d); err != nil || d.Name != "a" || len(d.List) != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	for text, want := range map[string]string{
		"":                         "f.yaml: is empty",
		"name: a\nnames: b":        "f.yaml:2: unknown key names",
		"name: a\nlist: {a: b}":    "f.yaml:2: a map () is not what was expected here",
		"name: a\nlist: 5\nfoo: 2": "f.yaml:2: a int (5) is not what was expected here",
		"a: [":                     "f.yaml:2: did not find expected node content",
		"name: \x00":               "f.yaml: control characters",
		strings.Repeat("#", 2<<20): "at most 1048576 are read",
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
	fmt.Printf("mine.yaml%s: rounds: 1 to 100 were expected\n", Line([]byte("name: mine\nrounds: 0\n"), "rounds"))
	// Output:
	// mine.yaml:2: unknown key round
	// mine.yaml:2: rounds: 1 to 100 were expected
}
