package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"tare/desk/advise"
	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/export"
	"tare/internal/golden"
)

// texts are the keys of texts, and of numbers that are not the folder's own: they may change.
var texts = []string{"tier", "notes", "why", "sentence", "what", "missing", "name", "help", "needs", "finding", "tolerance", "against", "wanted", "tie_rule", "not_ranked",
	"spread", "inside", "stacks", "tracer_metrics", "headline", "paper", "group", "place", "study", "published"}

// numbers leaves of an answer what is not said in words.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if slices.Contains(texts, k) {
				delete(v, k)
			} else {
				v[k] = numbers(x)
			}
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}

// A folder that an earlier version made gives the same numbers as that version gave: testdata/made-before is a real study,
// traced and shortened, and numbers.json has its export. Its advice has changed since that version: no ratio of the folder has an interval,
// so nothing is recommended. Its ratios have too: the A/A control is a second arm of bare metal.
func TestFoldersMadeBefore(t *testing.T) {
	dir := filepath.Join("testdata", "made-before")
	s, err := data.Read([]string{dir}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := explain.From(s)
	if err != nil {
		t.Fatal(err)
	}
	advice, err := advise.Of(s, advise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := claims.Shipped("")
	if err != nil {
		t.Fatal(err)
	}
	verdicts := slices.DeleteFunc(claims.Judge(s, all), func(v claims.Verdict) bool { return v.Evidence == nil })
	given := map[string]any{}
	for command, write := range map[string]func(io.Writer) error{
		"summary": func(w io.Writer) error { return export.Summary(w, s) },
		"explain": func(w io.Writer) error { return export.Accounts(w, accounts) },
		"claims":  func(w io.Writer) error { return export.Verdicts(w, verdicts) },
		"advise":  func(w io.Writer) error { return export.Advice(w, advice) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		given[command] = numbers(got)
	}
	text, err := json.MarshalIndent(given, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "made-before/numbers.json", append(text, '\n'))
}
