// Package yamlfile reads the files that people write, studies, workloads and claims: strictly, and with a line for each
// error.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Line is ":N" for the line of a YAML document on which the value at path stands; path holds the keys of mappings
// and the indexes of sequences from the top. Where the path leads nowhere, the line of its last known part, or "".
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

// Decode decodes one YAML document into v. A key that v does not have is an error. Errors read "FILE:LINE: what
// was expected".
func Decode(where string, text []byte, v any) error {
	const most = 1 << 20 // no file that people write comes near; an accident or an attack does
	if len(text) > most {
		return fmt.Errorf("%s: is %d bytes long, at most %d are read", where, len(text), most)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(v)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%s", where, yamlError(err))
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type .*`)
	otherKind  = regexp.MustCompile("cannot (?:construct|unmarshal) !!(\\S+)(?: `([^`]*)`)? into \\S+")
)

// yamlError puts the decoder's first error into ":LINE: text".
func yamlError(err error) string {
	if err == io.EOF {
		return ": is empty"
	}
	line := ""
	text := err.Error()
	if at := (*yaml.LoadError)(nil); errors.As(err, &at) {
		if text = at.Message; at.Mark.Line > 0 {
			line = fmt.Sprint(":", at.Mark.Line)
		}
	}
	text = unknownKey.ReplaceAllString(text, "unknown key $1")
	text = otherKind.ReplaceAllString(text, "a $1 ($2) is not what was expected here")
	return line + ": " + strings.Join(strings.Fields(text), " ")
}
