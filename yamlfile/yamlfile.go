// Package yamlfile reads the files that people write: studies, workloads and claims. It accepts no unknown keys, and its errors name the
// line.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Line is ":N" for the line of the value at path in a YAML document. path holds the keys of mappings and the indexes of sequences from the
// top. If the path leads nowhere, Line is for the last part that exists, or "" if none does.
func Line(text []byte, path ...any) string {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return ""
	}
	n, line := doc.Content[0], 0
	for _, step := range path {
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					next, line = n.Content[i+1], n.Content[i].Line
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
				line = next.Line
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	if line == 0 {
		return ""
	}
	return fmt.Sprint(":", line)
}

// Decode decodes one YAML document into v. A key that v does not have is an error. Errors have the form "FILE:LINE: what is wrong: what is
// allowed".
func Decode(where string, text []byte, v any) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%s: has %d bytes: at most %d are allowed", where, len(text), MaxBytes)
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) == nil { // otherwise Decode returns the error
		if n := overfull(&doc); n != nil {
			return fmt.Errorf("%s:%d: has %d keys here: at most %d are allowed", where, n.Line, len(n.Content)/2, maxKeys)
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(v)
	if err == nil {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("%s: is empty", where)
	}
	line, wrong := yamlError(err, keys(reflect.TypeOf(v), map[string][]string{}))
	if line > 0 {
		where = fmt.Sprint(where, ":", line)
	}
	return fmt.Errorf("%s: %s", where, wrong)
}

// PartError is an error in a part of a document, with its line in the document; 0: unknown.
type PartError struct {
	Line int
	Text string
}

// Error returns the text.
func (e *PartError) Error() string { return e.Text }

// DecodePart decodes a part of a document into v, as strictly as Decode. Its error is a *PartError.
func DecodePart(n *yaml.Node, v any) error {
	err := n.Load(v, yaml.WithKnownFields())
	if err == nil {
		return nil
	}
	line, text := yamlError(err, keys(reflect.TypeOf(v), map[string][]string{}))
	return &PartError{line, text}
}

// Field is a field of a structure, with its key in the file.
type Field struct {
	Key string
	reflect.StructField
}

// Fields are the fields of a structure that a file can set, including those of inlined structures.
func Fields(t reflect.Type) (all []Field) {
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.IsExported() && key != "-" && options != "inline" {
			all = append(all, Field{cmp.Or(key, strings.ToLower(f.Name)), f})
		}
	}
	return all
}

// Limited is a structure in which some keys allow only certain values.
type Limited interface {
	// Allowed returns the allowed values by key. They apply to the key's value, or to each entry of its list.
	Allowed() map[string][]string
}

// Refused returns the first value of a structure that is not allowed, with its key and the allowed values. An empty key means that all
// values are allowed. A value that is empty or absent in the file is not checked.
func Refused(v Limited) (key, value string, allowed []string) {
	s, limits := reflect.Indirect(reflect.ValueOf(v)), v.Allowed()
	for _, f := range Fields(s.Type()) {
		allowed, limited := limits[f.Key]
		field := s.FieldByIndex(f.Index)
		if !limited || field.IsZero() {
			continue
		}
		values := []string{field.String()}
		if field.Kind() == reflect.Slice {
			values = field.Convert(reflect.TypeFor[[]string]()).Interface().([]string)
		}
		for _, value := range values {
			if !slices.Contains(allowed, value) {
				return f.Key, value, allowed
			}
		}
	}
	return "", "", nil
}

// Keys are the keys of a structure in a file.
func Keys(v any) (all []string) {
	for _, f := range Fields(reflect.Indirect(reflect.ValueOf(v)).Type()) {
		all = append(all, f.Key)
	}
	return all
}

// Unknown is the error text for an unknown key: it names the nearest known key, if one is near, and all known keys.
func Unknown(key string, known []string) string {
	text, the := "unknown key "+key, ": the"
	if n := Nearest(key, known); n != "" {
		text, the = text+": did you mean "+n+"?", " The"
	}
	if len(known) > 0 {
		text += the + " keys here are " + strings.Join(known, ", ")
	}
	return text
}

// ErrScalars is the error of Scalars.
var ErrScalars = errors.New("must be a value or a list of values")

// Scalars returns the text of a scalar, or the texts of a list of scalars.
func Scalars(n *yaml.Node) (all []string, err error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return nil, ErrScalars
		}
		all = append(all, n.Value)
	}
	return all, nil
}

// Share reads a percentage above 0, at most 100%, as a share of 1.
func Share(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q: must be a percentage above 0%% and at most 100%%, such as 3%%", text)
	}
	return percent / 100, nil
}

// overfull returns a mapping with more keys than maxKeys, or nil.
func overfull(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		return n
	}
	for _, part := range n.Content {
		if found := overfull(part); found != nil {
			return found
		}
	}
	return nil
}

var (
	unknownKey = regexp.MustCompile(`^field (.*) not found in type (.+)$`)
	otherKind  = regexp.MustCompile("^cannot construct !!(\\S+)(?: `((?s).*)`)? into (.+)$")
)

// yamlError returns the line, or 0, and the text of the decoder's first error. known has the keys of each type.
func yamlError(err error, known map[string][]string) (line int, text string) {
	text = err.Error()
	if at := (*yaml.LoadError)(nil); errors.As(err, &at) {
		text, line = at.Message, at.Mark.Line
	}
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		text = Unknown(m[1], known[m[2]])
	} else if m := otherKind.FindStringSubmatch(text); m != nil {
		text = found(m[1], m[2]) + ": must be " + allowed(m[3], known[m[3]])
	}
	return max(line, 0), strings.Join(strings.Fields(text), " ")
}

// found describes what the file contains, by the decoder's name for its kind.
func found(kind, value string) string {
	switch kind {
	case "seq":
		return "a list"
	case "map":
		return "keys with values"
	}
	return strconv.Quote(value)
}

// allowed describes what a type accepts. keys are the keys of a structure.
func allowed(of string, keys []string) string {
	switch {
	case len(keys) > 0:
		return "{" + strings.Join(keys, ": …, ") + ": …}"
	case strings.HasPrefix(of, "[]"):
		return "a list"
	case strings.HasPrefix(of, "map["):
		return "keys with values, {KEY: …}"
	case of == "bool":
		return "true or false"
	case of == "string":
		return "text"
	case strings.HasPrefix(of, "float"):
		return "a number"
	}
	return "a whole number"
}

// keys adds the keys of all structures in a type to known, by the names of the structures.
func keys(t reflect.Type, known map[string][]string) map[string][]string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return keys(t.Elem(), known)
	case reflect.Struct:
		if _, met := known[t.String()]; met {
			return known
		}
		known[t.String()] = nil
		for _, f := range Fields(t) {
			keys(f.Type, known)
			known[t.String()] = append(known[t.String()], f.Key)
		}
	}
	return known
}

// Nearest returns the word in of that the user most likely meant; "" if none is near.
func Nearest(word string, of []string) (best string) {
	least := min(3, len(word)) // words that differ in three letters or more are different words
	for _, other := range of {
		if d := distance(word, other); d < least {
			best, least = other, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two words, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
