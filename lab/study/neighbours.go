package study

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	fitkind "tare/notebook/kinds/fit"
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

// each gives a workload's parameters with each of the treatments' neighbours among them, as Paging.each does.
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
	if p.Study.Kind == fitkind.Name {
		return []string{notebook.BusyCPU}
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

// company is a guest's neighbours at work.
type company struct {
	of     notebook.Treatment
	guests []Guest
	works  []*service
	kinds  []string
	seats  int
	spread bool // over all of the host's CPUs, in turn, so that each has as many guests
}

// all are the measured guest's own, and the neighbours.
func (c *company) all(own []Guest) []Guest {
	if c == nil {
		return own
	}
	return slices.Concat(own, c.guests)
}

// keepCompany makes the neighbours of a treatment's guest, and has them be busy. cause says why they are not. The error is of a guest that cannot be
// removed again.
func (r *Run) keepCompany(ctx context.Context, first Guest, t notebook.Treatment) (c *company, cause string, err error) {
	n := notebook.NeighboursOf(t)
	if n.None() {
		return nil, "", nil
	}
	seats, err := r.Lab.Seats(t)
	if err != nil {
		return nil, "its neighbours have no CPUs: " + err.Error(), nil
	}
	c = &company{of: t, seats: seats, spread: n.PerCore > 0}
	cause, err = r.add(ctx, c, first, n.Kinds(seats))
	if cause != "" || err != nil {
		return nil, cause, errors.Join(err, c.leave(ctx))
	}
	return c, "", nil
}

// add adds neighbours that do that, and waits until they have begun.
func (r *Run) add(ctx context.Context, c *company, first Guest, kinds []string) (cause string, err error) {
	began := len(c.guests)
	for i, kind := range kinds {
		if ctx.Err() != nil {
			return "", nil // its caller sees that
		}
		nth := fmt.Sprintf("neighbour %d of %d", began+i+1, began+len(kinds))
		each, err := (append([]Guest{first}, c.guests...))[len(c.guests)].Resident() // they are alike
		if err != nil {
			return nth + ": " + err.Error(), nil
		}
		if cause := room(1+len(c.guests), each, c.of.Instance.Memory); cause != "" {
			return nth + ": " + cause, nil
		}
		pctx, cancel := context.WithTimeout(ctx, provisionTimeout)
		g, err := r.Lab.Beside(pctx, c.of, anID(), r.Plan.workOf(c.of, kind), c.seat(len(c.guests), kind))
		cancel()
		if err != nil {
			return nth + ": no guest: " + err.Error(), nil
		}
		c.guests, c.kinds = append(c.guests, g), append(c.kinds, kind)
	}
	var started []ruler.Begun
	for i, g := range c.guests[began:] {
		s, b := r.start(ctx, g, r.Plan.workOf(c.of, kinds[i]), c.of)
		c.works, started = append(c.works, s), append(started, b)
	}
	for i, b := range started {
		if cause := c.works[began+i].hasBegun(b); cause != "" {
			return fmt.Sprintf("neighbour %d: %s", began+i+1, cause), nil
		}
	}
	return "", nil
}

// seat is where the neighbour that does this is, the first of which is 0. What those share that do the same work is something else than CPUs.
func (c *company) seat(i int, kind string) int {
	if c.spread || kind == notebook.BusyWork {
		return (i + 1) % c.seats
	}
	return 0
}

// leave ends the neighbours' work and removes them. It may be called of a nil one.
func (c *company) leave(ctx context.Context) (err error) {
	if c == nil {
		return nil
	}
	return c.shrink(ctx, 0)
}

// shrink removes the latest neighbours, until there are n.
func (c *company) shrink(ctx context.Context, n int) (err error) {
	for _, w := range c.works[min(n, len(c.works)):] { // all at once: hundreds that go on being busy would starve those that remove them
		w.stop()
	}
	for _, w := range slices.Backward(c.works[min(n, len(c.works)):]) {
		err = errors.Join(err, w.takeDown(ctx))
	}
	err = errors.Join(err, vacate(ctx, c.guests[min(n, len(c.guests)):]))
	c.works, c.guests, c.kinds = c.works[:min(n, len(c.works))], c.guests[:min(n, len(c.guests))], c.kinds[:min(n, len(c.kinds))]
	return err
}

const (
	busyShare = 0.5      // of what a CPU-busy neighbour's cores could be asked for: less is idling
	busyBytes = 64 << 10 // that an I/O-busy one has moved at least: a block
)

// watch reads what the neighbours and the measured guest have done so far. What it gives says later what they did since; why says which of them was
// not busy, so that the trial was none beside the neighbours that it should have had, and over that one has ended. Nothing must be measured meanwhile.
func (c *company) watch(own Guest) func() (did *notebook.Company, why string, over bool) {
	if c == nil {
		return func() (*notebook.Company, string, bool) { return nil, "", false }
	}
	read := func() (all []proc.Demand, used time.Duration, err error) {
		for _, g := range c.guests {
			d, err := g.Demanded()
			if err != nil {
				return nil, 0, err
			}
			all = append(all, d)
		}
		used, err = own.Used() // with its work, which will have ended
		return all, used, err
	}
	before, had, err := read()
	began := time.Now()
	return func() (did *notebook.Company, why string, over bool) {
		took := time.Since(began)
		if i := slices.IndexFunc(c.works, (*service).over); i >= 0 {
			return nil, fmt.Sprintf("neighbour %d ended: %s", i+1, c.works[i].how()), true
		}
		var after []proc.Demand
		var has time.Duration
		if err == nil {
			after, has, err = read()
		}
		if err != nil {
			return nil, "what its neighbours do cannot be read: " + err.Error(), false
		}
		did = &notebook.Company{OfS: took.Seconds(), OwnS: max(has-had, 0).Seconds()}
		for i, kind := range c.kinds {
			a, b := after[i], before[i]
			n := notebook.Neighbour{Busy: kind, Seat: c.seat(i, kind), RanS: max(a.Ran-b.Ran, 0).Seconds(), WaitedS: max(a.Waited-b.Waited, 0).Seconds(), Moved: max(a.Moved-b.Moved, 0)}
			if n.Idle = idle(n, took, c.of.Instance.Cores); n.Idle != "" && why == "" {
				why = fmt.Sprintf("neighbour %d of %d was not busy: %s", i+1, len(c.kinds), n.Idle)
			}
			did.Neighbours = append(did.Neighbours, n)
		}
		return did, why, false
	}
}

// accompanied says what a trial's neighbours did, and fails the trial where it was none beside such neighbours. over: one of them has ended.
func accompanied(tr *notebook.Trial, busy func() (*notebook.Company, string, bool)) (did *notebook.Company, over bool) {
	did, why, over := busy()
	if why != "" && tr.Failure == "" {
		tr.Failure = why
	}
	if f := did.Figures(); len(f) > 0 && tr.Failure == "" {
		if tr.Figures == nil {
			tr.Figures = map[string]float64{}
		}
		maps.Copy(tr.Figures, f)
	}
	return did, over
}

// idle says why a neighbour was not busy for a time; "": it was.
func idle(n notebook.Neighbour, took time.Duration, cores float64) string {
	switch want := busyShare * cores * took.Seconds(); {
	case n.Busy == notebook.BusyIO && n.Moved < busyBytes:
		return fmt.Sprintf("it moved %d bytes to and from disks in %.3g s", n.Moved, took.Seconds())
	case n.Busy == notebook.BusyWork && n.RanS == 0 && n.Moved == 0:
		return "it neither ran nor moved a byte"
	case n.Busy == notebook.BusyCPU && n.RanS+n.WaitedS < want:
		return fmt.Sprintf("it ran for %.3g s and was ready to for %.3g s, of %.3g s on %.3g cores", n.RanS, n.WaitedS, took.Seconds(), cores)
	}
	return ""
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
