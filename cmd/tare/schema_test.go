package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tare/schemas"
)

// summarySchema is the schema as `tare schema summary` prints it.
func summarySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	said, err := output(t, []string{"schema", "summary"})
	shipped, readErr := fs.ReadFile(schemas.FS, "summary.json")
	if err != nil || readErr != nil || !bytes.Equal(said, shipped) {
		t.Fatalf("schema summary: %v, %v: %.200s", err, readErr, said)
	}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("summary", text); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("summary")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSummariesFollowTheSchema: the JSON of each sample, of several, and against another reference is valid by the shipped schema.
func TestSummariesFollowTheSchema(t *testing.T) {
	schema := summarySchema(t)
	samples, err := filepath.Glob("testdata/samples/*/study.json")
	if err != nil || len(samples) < 17 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	lines := []string{"summary testdata/samples/timing testdata/samples/timing-again", "summary testdata/samples/timing --against cn:docker:quota", "summary ../../desk/export/testdata/made-before"}
	for _, s := range samples {
		lines = append(lines, "summary "+filepath.Dir(s))
	}
	var last any
	for _, line := range lines {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(printed(t, line+" --format json")))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		last = v
	}
	answer := last.(map[string]any)
	for key, value := range map[string]any{"schema": "tare.summary/2", "margin": "5%", "title": "x"} {
		was := answer[key]
		answer[key] = value
		if schema.Validate(answer) == nil {
			t.Errorf("%s: %v is valid by the schema", key, value)
		}
		if was == nil {
			delete(answer, key)
		} else {
			answer[key] = was
		}
	}
}

// TestAgainstIsNamed: the JSON names the reference as --against does, and compares its own row with nothing.
func TestAgainstIsNamed(t *testing.T) {
	var answer struct {
		Reference  string
		Confidence float64
		Rows       []struct{ Treatment, Baseline, Verdict *string }
	}
	if err := json.Unmarshal(printed(t, "summary testdata/samples/timing --against cn:docker:quota --format json"), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Reference != "cn:docker:quota" || answer.Confidence != 0.95 || len(answer.Rows) == 0 {
		t.Errorf("%+v", answer)
	}
	for _, r := range answer.Rows {
		if r.Baseline == nil || *r.Treatment == *r.Baseline && r.Verdict != nil {
			t.Errorf("%+v", r)
		}
	}
}

// TestSummaryTableHasTheKeysOfTheJSON: each column but "secondary" is a key of the JSON.
func TestSummaryTableHasTheKeysOfTheJSON(t *testing.T) {
	const sample = "summary testdata/samples/metrics"
	lines, err := csv.NewReader(bytes.NewReader(printed(t, sample+" --format csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Rows []map[string]any }
	if err := json.Unmarshal(printed(t, sample+" --format json"), &answer); err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, line := range lines[1:] {
		if line[len(line)-1] == "false" {
			own++
		}
	}
	if own != len(answer.Rows) || len(lines)-1 <= own {
		t.Errorf("%d lines, %d of them of own metrics; the JSON has %d rows", len(lines)-1, own, len(answer.Rows))
	}
	for _, name := range lines[0] {
		if _, is := answer.Rows[0][name]; !is && name != "secondary" && name != "machine" && name != "better" {
			t.Errorf("the column %s is not a key", name)
		}
	}
	if _, err := output(t, []string{"summary", "testdata/samples/timing", "--format", "xml"}); err == nil || !strings.Contains(err.Error(), "csv") {
		t.Errorf("--format xml: %v", err)
	}
}

// schemaKeys are the keys of all objects that a schema describes.
func schemaKeys(t *testing.T, file string) []string {
	t.Helper()
	schema, err := fs.ReadFile(schemas.FS, file)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(s.Properties))
	for _, of := range s.Defs {
		names = slices.AppendSeq(names, maps.Keys(of.Properties))
	}
	return names
}

// TestResultsAreDocumented: docs/results.md names each key of the summary's JSON and each column of the export.
func TestResultsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	names := schemaKeys(t, "summary.json")
	for _, line := range []string{"export testdata/samples/timing", "summary testdata/samples/timing --format csv"} {
		columns, err := csv.NewReader(bytes.NewReader(printed(t, line))).Read()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, columns...)
	}
	ofKinds := []string{"startup", "bringup", "steps", "fitted"}
	for _, name := range names {
		if !slices.Contains(ofKinds, name) && !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("docs/results.md does not explain %s", name)
		}
	}
}
