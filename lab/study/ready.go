package study

import (
	"cmp"
	"context"
	"fmt"

	"tare/lab/image"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
)

// make makes those workloads ready that at least one treatment uses.
func (p *Plan) make(ctx context.Context, asked *studyfile.Asked, o workload.Options) error {
	var used []studyfile.Work
	var all []*workload.Workload
	for _, u := range asked.Works {
		if _, measured := p.Study.Metrics[u.Workload.Name]; measured {
			used = append(used, u)
			all = append(all, u.Workload)
		}
	}
	o.Input = asked.Choices.Input
	if err := workload.Gather(ctx, all, o); err != nil {
		return err
	}
	for _, u := range used {
		w, label := u.Workload, u.Label()
		if p.ready[label] != nil {
			continue
		}
		o.Input = asked.Choices.Input
		if w.Input == nil && len(asked.Works) > 1 {
			o.Input = "" // the input is for the other workloads
		}
		r, err := workload.Make(ctx, w, u.Params, o)
		if err != nil {
			return err
		}
		p.ready[label], p.open[label] = r, u.Open
		p.Study.Images[label] = notebook.Image{Reference: r.Image.Reference, Digest: r.Image.Digest, Base: r.Image.Base, Input: r.Work.Digest}
	}
	return nil
}

// busy makes the work of neighbours ready. of returns the workload of a neighbour of a kind of notebook.Busy.
func (p *Plan) busy(ctx context.Context, of func(busy string) (*workload.Workload, error), o workload.Options) error {
	p.work = map[string]*workload.Ready{}
	for _, t := range p.Study.Treatments {
		for _, kind := range p.kinds(t) {
			if kind == notebook.BusyWork {
				if w := p.readyOf(t).Workload; w.Length == "" || w.Service != nil {
					return fmt.Errorf("neighbours: work: workload %s ends by itself, because its length cannot be chosen (length: in its file): use cpu: or io: instead", w.Name)
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

// prepare makes what the treatments' guests need. A platform for which that fails is left out, with the reason: the others can
// still be measured.
func (p *Plan) prepare(ctx context.Context, lab Lab) error {
	type needed struct {
		platform, engine, accelerator, kernel, root string
		pull                                        notebook.Pull
	}
	answers := map[needed]error{}
	var kept []notebook.Treatment
	for _, t := range p.Study.Treatments {
		roots := []*image.Image{p.readyOf(t).Image}
		for _, kind := range p.kinds(t) {
			roots = append(roots, p.workOf(t, kind).Image)
		}
		var err error
		for _, root := range roots {
			key := needed{t.Platform, t.Engine, t.Accelerator, t.Kernel, root.Digest, notebook.PullOf(t)}
			answer, asked := answers[key]
			if !asked {
				answer = lab.Prepare(ctx, t, root)
				answers[key] = answer
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = cmp.Or(err, answer)
		}
		if err != nil {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: notebook.Say("not-made-ready", "cause", err)})
			continue
		}
		kept = append(kept, t)
	}
	p.Study.Treatments = kept
	return nil
}
