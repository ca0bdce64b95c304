package studyfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
	"tare/yamlfile"
)

// Shipped lists the names of the studies in files, which holds NAME.yaml for each.
func Shipped(files fs.FS) []string {
	names, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, ".yaml")
	}
	sort.Strings(names)
	return names
}

// Load reads a study: a shipped one by its name, or a user's file by its path. known is what the study may name.
func Load(files fs.FS, name string, known Known) (*Spec, error) {
	if slices.Contains(Shipped(files), name) {
		text, err := fs.ReadFile(files, name+".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name+".yaml", text, ".", known)
	}
	if !strings.ContainsAny(name, "/.") {
		meant := ""
		if near := yamlfile.Nearest(name, Shipped(files)); near != "" {
			meant = "did you mean " + near + "? "
		}
		return nil, fmt.Errorf("unknown study %q: %s`tare study list` names the shipped studies, and a path like ./%s.yaml names your own file", name, meant, name)
	}
	text, err := yamlfile.Read(name)
	if err != nil {
		return nil, fmt.Errorf("study file: %w", err)
	}
	return Parse(name, text, filepath.Dir(name), known)
}

// Parse reads a study file. Errors name the file, the line if it is known, and what is allowed there.
func Parse(where string, text []byte, base string, known Known) (*Spec, error) {
	s := &Spec{Source: string(text), Base: base, where: where, known: known, Design: Design{Trials: 1}}
	if err := yamlfile.Decode(where, text, s); err != nil {
		return nil, err
	}
	s.defaults()
	if p := s.validate(); p != nil {
		if p.line > 0 {
			return nil, fmt.Errorf("%s:%d: %s", where, p.line, p.text)
		}
		return nil, s.located(errors.New(p.text), p.path...)
	}
	return s, nil
}

// Complete checks a spec that was not read from a file, and gives it its defaults and its source: a study file with the same content.
func (s *Spec) Complete(known Known) error {
	s.known = known
	s.Design.Trials = cmp.Or(s.Design.Trials, 1) // a 0 in a file is an error
	s.defaults()
	if p := s.validate(); p != nil {
		return errors.New(p.text)
	}
	text, err := yaml.Marshal(s)
	s.Source, s.Base = string(text), "."
	return err
}

// Measure sets the kind of study of a spec that was not read from a file. file is what a study file would hold under the kind's name.
func (s *Spec) Measure(kind string, file any) error {
	var n yaml.Node
	if err := n.Encode(file); err != nil {
		return err
	}
	s.Measured = map[string]yaml.Node{kind: n}
	return nil
}

func (s *Spec) defaults() {
	for i, p := range s.Platforms {
		s.Platforms[i].Platform = notebook.PlatformNamed(p.Platform)
	}
	d := &s.Design
	if d.Rounds.Floor == 0 {
		d.Rounds.Floor = min(5, max(d.Rounds.Cap, 1))
	}
	if d.Rounds.Cap == 0 {
		d.Rounds.Cap = max(20, d.Rounds.Floor) // the papers repeat 20 times
	}
	if d.Rounds.Emulated == 0 {
		d.Rounds.Emulated = d.Rounds.Floor
	}
	if d.Timeout == "" {
		d.Timeout = "10m"
	}
}
