package studyfile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
)

// Neighbours are the busy guests next to the measured one (paper "virtualization-overheads", chapter 4). A study file has a mapping
// {cpu: N, io: N, work: N}, or a list of mappings that each make treatments.
type Neighbours []notebook.Neighbours

// UnmarshalYAML reads one mapping or a list of mappings.
func (n *Neighbours) UnmarshalYAML(node *yaml.Node) error {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, each := range nodes {
		refused := func(value string) error {
			return fmt.Errorf("line %d: neighbours: %s: must be {cpu: N, io: N, work: N}, or one of them as N/core; N is 0 to %d", each.Line, value, notebook.MostNeighbours)
		}
		switch each.Kind {
		case yaml.MappingNode:
		case yaml.SequenceNode:
			return refused("a list in a list")
		default:
			return refused(strconv.Quote(each.Value))
		}
		var parts []string
		for i := 0; i+1 < len(each.Content); i += 2 {
			parts = append(parts, each.Content[i].Value+":"+each.Content[i+1].Value)
		}
		of, err := notebook.Neighbours{}, error(nil)
		if len(parts) > 0 {
			text := strings.Join(parts, "+")
			if of, err = notebook.ParseNeighbours(text); err != nil {
				return refused(strconv.Quote(text))
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

// ParseNeighbours reads texts for notebook.ParseNeighbours, with commas between them: "none,cpu:1,cpu:4/core".
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
