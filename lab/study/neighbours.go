package study

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/lab/workload"
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

// each gives a workload's parameters with each of the treatments' neighbours among them, as Spec.each does with a kind's factors.
func (n Neighbours) each(full map[string]string) (all []map[string]string, err error) {
	if len(n) == 0 {
		return []map[string]string{full}, nil
	}
	if _, taken := full[notebook.ParamNeighbours]; taken {
		return nil, fmt.Errorf("neighbours: the workload has a parameter %q of its own: one without it was expected", notebook.ParamNeighbours)
	}
	for _, each := range n {
		params := maps.Clone(full)
		params[notebook.ParamNeighbours] = each.Text()
		all = append(all, params)
	}
	return all, nil
}

// busyWork is the workload of a neighbour that is so busy.
var busyWork = map[string]string{notebook.BusyCPU: "busy-cpu", notebook.BusyIO: "busy-io"}

// busy makes ready what neighbours of the study's treatments do.
func (p *Plan) busy(ctx context.Context, shipped fs.FS, o workload.Options) error {
	p.work = map[string]*workload.Ready{}
	for _, t := range p.Study.Treatments {
		for _, kind := range p.kinds(t) {
			if kind == notebook.BusyWork {
				if w := p.readyOf(t).Workload; w.Length == "" || w.Service != nil {
					return fmt.Errorf("neighbours: work: of workload %s no length can be chosen (length: in its file), so it ends by itself: cpu: or io: was expected", w.Name)
				}
				continue
			}
			if p.work[kind] != nil {
				continue
			}
			w, err := workload.Find(shipped, busyWork[kind], ".")
			if err != nil {
				return err
			}
			o.Input = ""
			if p.work[kind], err = workload.Make(ctx, w, nil, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// kinds are what neighbours of the treatment's guest do, each at least once.
func (p *Plan) kinds(t notebook.Treatment) []string {
	if p.config != nil && len(p.config.Neighbours()) > 0 {
		return p.config.Neighbours()
	}
	return notebook.NeighboursOf(t).Kinds(2) // with two seats any has one of each of its kinds
}

// workOf is what a neighbour of that kind does beside a treatment's guest.
func (p *Plan) workOf(t notebook.Treatment, kind string) *workload.Ready {
	if kind != notebook.BusyWork {
		return p.work[kind]
	}
	same := *p.readyOf(t)
	w := same.Workload
	same.Params = maps.Clone(same.Params)
	same.Params[w.Length] = strconv.Itoa(w.Params[w.Length].Most(math.MaxInt32))
	return &same
}

// neighboursFit says why the host has no room for a treatment's neighbours, as far as that is known before there are any; nil: it has.
func neighboursFit(h notebook.Host, t notebook.Treatment) error {
	n := notebook.NeighboursOf(t)
	hostCores := len(h.CPUs)
	if t.HostCores > 0 {
		hostCores = t.HostCores
	}
	kinds := n.Kinds(max(hostCores/max(int(math.Ceil(t.Instance.Cores)), 1), 1))
	if len(kinds) > notebook.MostNeighbours {
		return fmt.Errorf("it needs %d neighbours here, and there are %d at most", len(kinds), notebook.MostNeighbours)
	}
	if t.Platform != notebook.VM && t.Platform != notebook.VMCN {
		return nil // a container's page cache is the host's, which takes it back
	}
	full := int64(1) // guests that may come to all of their memory: those that compute take little
	for _, kind := range kinds {
		if kind != notebook.BusyCPU {
			full++
		}
	}
	if all := full * t.Instance.Memory; len(kinds) > 0 && all > h.Memory-spareMemory {
		return fmt.Errorf("it needs %.3g GB of memory with its neighbours, whose page caches the host cannot take back, and the host has %.1f GB, of which half a GB stays the host's own",
			float64(all)/(1<<30), float64(h.Memory)/(1<<30))
	}
	return nil
}
