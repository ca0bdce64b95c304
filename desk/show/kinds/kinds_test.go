package kinds

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The list holds each kind that records more than metrics, once.
func TestAllKinds(t *testing.T) {
	dirs, err := os.ReadDir("../../../notebook/kinds")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, k := range All {
		listed = append(listed, strings.ReplaceAll(k.Name(), "-", ""))
	}
	for _, d := range dirs {
		if !slices.Contains(listed, d.Name()) {
			t.Errorf("no kind %q is in the list", d.Name())
		}
	}
	slices.Sort(listed)
	if len(slices.Compact(listed)) != len(All) {
		t.Errorf("a kind is in the list twice: %q", listed)
	}
}

// ofKind writes a folder of a kind. Its study has config, and its last trial has seen, in addition to what any study has.
func ofKind(t *testing.T, kind string, config, seen any) string {
	t.Helper()
	f := notebooktest.New(2).Add("bm large", 1)
	f.Rounds, f.Study.Kind, f.Study.Config = 2, kind, config
	f.Trial = func(x *notebook.Trial) {
		if x.Round == 1 {
			x.Seen = seen
		}
	}
	return f.Write(t)
}

// What a kind cannot read gives one clear line, with the file and the place in it. A kind that does not exist is named.
func TestAFolderThatIsNoKinds(t *testing.T) {
	keys := map[string]string{"memory": "weights", "arrivals": "bringup", "starting": "startup", "capacity": "steps", "fit": "fitted", "paging": "page_tables"}
	configs := map[string]any{"memory": map[string]any{"guests": []int{1}}}
	for kind, key := range keys {
		if configs[kind] == nil {
			configs[kind] = map[string]any{}
		}
		dir := ofKind(t, kind, map[string]any{"guests": "many", "to": "many", "for_s": "long", "caches": "many"}, map[string]any{})
		want := dir + string(filepath.Separator) + "study.json: " + `"` + kind + `": `
		if _, err := data.Read([]string{dir}, data.Options{Kinds: All}); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s…", err, want)
		}
		dir = ofKind(t, kind, configs[kind], map[string]any{key: "none"})
		want = filepath.Join(dir, "trials.jsonl") + ":4: not a trial: " // the first trial of the second round
		if _, err := data.Read([]string{dir}, data.Options{Kinds: All}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", kind, err, want)
		}
	}
	dir := ofKind(t, "weather", map[string]any{}, nil)
	if _, err := data.Read([]string{dir}, data.Options{Kinds: All}); err == nil || !strings.Contains(err.Error(), dir+`: its study is of the kind "weather", which this tare does not know`) {
		t.Errorf("a kind that is not known: %v", err)
	}
}
