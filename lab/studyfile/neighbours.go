package studyfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
)

// Neighbours is how a study file says which guests are busy beside the measured one (paper "virtualization-overheads", chapter 4): a mapping
// {cpu: N, io: N, work: N}, or a list of such, of which each makes treatments.
type Neighbours []notebook.Neighbours

// UnmarshalYAML reads it.
func (n *Neighbours) UnmarshalYAML(node *yaml.Node) error {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, each := range nodes {
		expected := fmt.Errorf("line %d: {cpu: N, io: N, work: N}, or one of them as N/core, was expected", each.Line)
		if each.Kind != yaml.MappingNode {
			return expected
		}
		var parts []string
		for i := 0; i+1 < len(each.Content); i += 2 {
			parts = append(parts, each.Content[i].Value+":"+each.Content[i+1].Value)
		}
		of, err := notebook.Neighbours{}, error(nil)
		if len(parts) > 0 {
			if of, err = notebook.ParseNeighbours(strings.Join(parts, "+")); err != nil {
				return fmt.Errorf("%w, not %w", expected, err)
			}
		}
		*n = append(*n, of)
	}
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (n Neighbours) MarshalYAML() (any, error) {
	var all []map[string]string
	for _, each := range n {
		m := map[string]string{}
		for _, part := range strings.Split(each.Text(), "+") {
			if busy, count, ok := strings.Cut(part, ":"); ok {
				m[busy] = count
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// ParseNeighbours reads a list of what notebook.ParseNeighbours reads: "none,cpu:1,cpu:4/core".
func ParseNeighbours(text string) (all Neighbours, err error) {
	for _, part := range strings.Split(text, ",") {
		n, err := notebook.ParseNeighbours(part)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
