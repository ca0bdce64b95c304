// Command sbom completes and checks the bill of materials (CycloneDX, JSON) of a program:
//
//	sbom add FILE                     adds the embedded works of NOTICE that are not Go modules
//	sbom check FILE PROGRAM SCHEMAS   compares it with PROGRAM, NOTICE and the JSON schemas in the folder SCHEMAS
//
// NOTICE is read from the working directory.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "add":
		err = add(args[1])
	case len(args) == 4 && args[0] == "check":
		err = check(args[1], args[2], args[3])
	default:
		err = errors.New("usage: sbom add FILE | sbom check FILE PROGRAM SCHEMAS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// work is an embedded work that is not a Go module.
type work struct{ name, licence string }

// works reads those of NOTICE: lines of a name and a licence with two blanks or more between them. The names of modules have slashes.
func works() (all []work, err error) {
	text, err := os.ReadFile("NOTICE")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if ok && strings.HasPrefix(line, "  ") && !strings.Contains(name, "/") {
			licence, _, _ := strings.Cut(strings.TrimSpace(rest), ";")
			all = append(all, work{name, licence})
		}
	}
	if all == nil {
		return nil, errors.New("NOTICE names no embedded work that is not a Go module")
	}
	return all, nil
}

func add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var bill map[string]any
	if err := json.Unmarshal(text, &bill); err != nil {
		return err
	}
	all, err := works()
	if err != nil {
		return err
	}
	components, _ := bill["components"].([]any)
	for _, w := range all {
		components = append(components, map[string]any{
			"type": "library", "bom-ref": strings.ReplaceAll(w.name, " ", "-"), "name": w.name,
			"licenses": []any{map[string]any{"license": map[string]any{"name": w.licence}}},
		})
	}
	bill["components"] = components
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(bill); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func check(file, program, schemas string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := valid(text, schemas); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var bill struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		return err
	}
	versions := map[string]string{}
	for _, c := range bill.Components {
		versions[c.Name] = c.Version
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	var missing []error
	if versions["std"] == "" {
		missing = append(missing, fmt.Errorf("%s lacks Go's standard library", file))
	}
	for _, m := range built.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if got, has := versions[m.Path]; !has || got != m.Version {
			missing = append(missing, fmt.Errorf("%s lacks %s %s, which the program has", file, m.Path, m.Version))
		}
	}
	all, err := works()
	if err != nil {
		return err
	}
	for _, w := range all {
		if _, has := versions[w.name]; !has {
			missing = append(missing, fmt.Errorf("%s lacks %s, which NOTICE names", file, w.name))
		}
	}
	return errors.Join(missing...)
}

// valid checks a bill of materials against the schema of its version.
func valid(text []byte, folder string) error {
	bill, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var of struct{ SpecVersion string }
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	const site = "http://cyclonedx.org/schema/"
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"spdx", "jsf-0.82"} { // the schema refers to them
		if err := resource(compiler, site+name+".schema.json", folder, name+".schema*.json"); err != nil {
			return err
		}
	}
	main := "bom-" + of.SpecVersion + ".schema.json"
	if err := resource(compiler, site+main, folder, main); err != nil {
		return err
	}
	schema, err := compiler.Compile(site + main)
	if err != nil {
		return err
	}
	return schema.Validate(bill)
}

// resource gives the compiler the file of a folder that the pattern names.
func resource(compiler *jsonschema.Compiler, url, folder, pattern string) error {
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s has %d files %s, want 1", folder, len(found), pattern)
	}
	f, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer f.Close()
	schema, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return err
	}
	return compiler.AddResource(url, schema)
}
