package study

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"

	"tare/lab/workload"
	"tare/notebook"
)

// busy makes ready what neighbours of the study's treatments do. of is the workload of a neighbour that is so busy.
func (p *Plan) busy(ctx context.Context, of func(busy string) (*workload.Workload, error), o workload.Options) error {
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
			w, err := of(kind)
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
