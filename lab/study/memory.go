package study

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
)

// Memory is how a study file says how guests are weighed: so many of a treatment are made, one beside the other, each doing the workload's work,
// and what they take of the host's memory is read at each of the numbers (paper "virtualization-overheads", sections 6.3 to 6.6.1).
type Memory struct {
	Guests []int  `yaml:"guests,omitempty"` // default 1 and 2
	KSM    string `yaml:"ksm,omitempty"`    // one of memorykind.KSMSettings; then they are weighed again with their pages merged
	Frames bool   `yaml:"frames,omitempty"` // virtual machines are asked what each frame of their memory is to them

	HugePages string `yaml:"huge_pages,omitempty"` // memorykind.HugePagesOff; default: as the host has them

	Roots []string `yaml:"roots,omitempty"` // of notebook.Roots; each makes a treatment

	Published   map[string][]float64 `yaml:"published,omitempty"`    // what the paper has of VMs, as memorykind.Config has it
	PublishedOf string               `yaml:"published_of,omitempty"` // the workload whose VMs are the paper's; default: each
}

const (
	mostGuests  = 1000
	stillFor    = time.Second      // guests that take no more for so long have settled; three times that where they are emulated
	still       = 0.005            // as a share of what they take
	bootTime    = 2 * time.Minute  // that a whole system may take until it is up; three times that where it is emulated
	settling    = time.Minute      // at most; three times that where they are emulated
	mergingTime = 10 * time.Minute // that the kernel may take until it merges no more
	reserve     = 0.05             // of the host's memory, which guests are not given
)

// parse reads it; a nil one is none.
func (m *Memory) parse() (*memorykind.Config, error) {
	if m == nil {
		return nil, nil
	}
	out := &memorykind.Config{Guests: slices.Clone(m.Guests), KSM: m.KSM, Frames: m.Frames, HugePages: m.HugePages}
	if m.HugePages != "" && m.HugePages != memorykind.HugePagesOff {
		return nil, fmt.Errorf("huge_pages: %q: %s was expected", m.HugePages, memorykind.HugePagesOff)
	}
	if len(out.Guests) == 0 {
		out.Guests = []int{1, 2}
	}
	for i, n := range out.Guests {
		if n < 1 || n > mostGuests || i > 0 && n <= out.Guests[i-1] {
			return nil, fmt.Errorf("guests: %v: numbers from 1 to %d, each greater than the one before, were expected", m.Guests, mostGuests)
		}
	}
	if m.KSM != "" && !slices.Contains(memorykind.KSMSettings, m.KSM) {
		return nil, fmt.Errorf("ksm: %q: %s was expected", m.KSM, oneOf(memorykind.KSMSettings))
	}
	for _, v := range m.Roots {
		if !slices.Contains(notebook.Roots, v) {
			return nil, fmt.Errorf("roots: %q: %s was expected", v, oneOf(notebook.Roots))
		}
	}
	known := append(out.Figures(), memorykind.PSS)
	for name, numbers := range m.Published {
		want := 1
		if slices.Contains(memorykind.PublishedLines, name) {
			want = 4
		}
		if !slices.ContainsFunc(known, func(f notebook.Metric) bool { return f.Name == name }) || len(numbers) != want {
			return nil, fmt.Errorf("published: %s: %v: a metric of this study with its number, or of duplicates with four, was expected", name, numbers)
		}
	}
	out.Published, out.PublishedOf = m.Published, m.PublishedOf
	return out, nil
}

// weighs are the metrics of a study that weighs so, after the first. The report draws what has a direction, so those have one that a figure names.
func (s *Spec) weighs(m *memorykind.Config) []notebook.Metric {
	all := m.Figures()
	for i, metric := range all {
		if slices.ContainsFunc(s.Figures, func(f notebook.Figure) bool { return f.Metric == metric.Name }) {
			all[i].Better = notebook.Lower
		}
	}
	return all
}

// patience is d, and longer where the treatment's guests are emulated.
func patience(t notebook.Treatment, d time.Duration) time.Duration {
	if !t.Representative() {
		return 3 * d
	}
	return d
}

// weigh makes as many guests of the treatment as the study weighs at once, the first of which there is already, has each do its work, and weighs
// them at each number. A rehearsal is of the first alone. The error is of a guest that cannot be removed, or of settings that cannot be put back.
func (r *Run) weigh(ctx context.Context, first Guest, ready *workload.Ready, t notebook.Treatment, rehearsal bool) (tr notebook.Trial, err error) {
	m := *memorykind.Of(r.Plan.Study)
	if rehearsal {
		m = memorykind.Config{Guests: []int{1}}
	}
	var seen memorykind.Seen
	tr.Start = time.Now().UTC()
	defer func() { tr.HostS, tr.Seen = time.Since(tr.Start).Seconds(), seen }()
	var guests []Guest
	var works []*service
	defer func() { err = errors.Join(err, r.leave(ctx, guests, works)) }()
	for _, n := range m.Guests {
		for len(guests) < n {
			if ctx.Err() != nil {
				return tr, nil // its caller sees that
			}
			nth := len(guests) + 1
			g, s, cause, err := r.resident(ctx, first, ready, t, guests, seen.Weights)
			if g != nil {
				guests, works = append(guests, g), append(works, s)
			}
			if cause != "" || err != nil {
				tr.Failure = fmt.Sprintf("guest %d of %d: %s", nth, m.Guests[len(m.Guests)-1], cause)
				return tr, err
			}
		}
		took, restless, err := settle(ctx, guests, t)
		if err != nil {
			tr.Failure = "what its guests take cannot be read: " + err.Error()
			return tr, nil
		}
		if restless != "" {
			tr.Warnings = append(tr.Warnings, restless)
		}
		asked := Outside
		if m.Frames {
			asked = Frames
		}
		end := n == m.Guests[len(m.Guests)-1]
		if m.Frames && end && m.KSM == "" {
			asked = FramesAndFiles
		}
		w, err := r.Lab.Weigh(ctx, guests, asked)
		if err != nil {
			tr.Failure = err.Error()
			return tr, nil
		}
		w.Guests, w.SettledS = n, took.Seconds()
		seen.Weights = append(seen.Weights, w)
		if m.KSM != "" {
			if m.Frames && end {
				asked = FramesAndFiles
			}
			merged, cause, err := r.merged(ctx, m.KSM, guests, n, asked)
			if cause != "" || err != nil {
				tr.Failure = cause
				return tr, err
			}
			if merged.KSM.Unsettled {
				tr.Warnings = append(tr.Warnings, fmt.Sprintf("with %d guests the kernel still merged pages after %v", n, mergingTime))
			}
			seen.Weights = append(seen.Weights, merged)
		}
		if i := slices.IndexFunc(works, func(s *service) bool { return s != nil && s.over() }); i >= 0 {
			tr.Failure = fmt.Sprintf("the work in guest %d ended while it was weighed: %s", i+1, works[i].how())
			return tr, nil
		}
	}
	tr.Figures = figures(m, seen.Weights)
	tr.Value = tr.Figures[memorykind.PSS.Name]
	return tr, nil
}

// resident is one more guest with its work in it, the first that is there already. cause says why there is none; the guest is none then, unless it
// has to be destroyed with the others.
func (r *Run) resident(ctx context.Context, first Guest, ready *workload.Ready, t notebook.Treatment, guests []Guest, weights []memorykind.Weight) (g Guest, s *service, cause string, err error) {
	if g, cause = r.another(ctx, first, ready, t, guests, weights); g == nil {
		return nil, nil, cause, nil
	}
	if ready.Workload.System {
		return g, nil, r.boot(ctx, g, ready, t), nil
	}
	if ready.Workload.Service != nil {
		s, cause, err = r.serve(ctx, g, t, anID(), ready)
		return g, s, cause, err
	}
	s, begun := r.start(ctx, g, ready, t)
	return g, s, s.hasBegun(begun), nil
}

// another is one more guest beside those that there are, the first that is there already; cause says why there is none.
func (r *Run) another(ctx context.Context, first Guest, ready *workload.Ready, t notebook.Treatment, guests []Guest, weights []memorykind.Weight) (g Guest, cause string) {
	if len(guests) == 0 {
		return first, ""
	}
	each := int64(0)
	if n := len(weights); n > 0 {
		each = (weights[n-1].RSS + weights[n-1].KernelCopy) / int64(weights[n-1].Guests)
	}
	if cause := room(len(guests), each, 0); cause != "" {
		return nil, cause
	}
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	g, err := r.Lab.Provision(ctx, t, anID(), ready)
	if err != nil {
		return nil, "no guest: " + err.Error()
	}
	return g, ""
}

// leave ends the works and removes the guests but the first, which is its caller's.
func (r *Run) leave(ctx context.Context, guests []Guest, works []*service) (err error) {
	for _, w := range slices.Backward(works) { // nil: a whole system has no work of its own
		err = errors.Join(err, w.takeDown(ctx))
	}
	return errors.Join(err, vacate(ctx, guests[min(1, len(guests)):]))
}

// start starts the workload's command in the guest, and gives what is closed when it has begun.
func (r *Run) start(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment) (*service, ruler.Begun) {
	begun := make(ruler.Begun)
	w := ready.Workload
	order := w.Order(w.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Bounds = begun
	return begin(ctx, g, t, ready, order), begun
}

// hasBegun waits until it has; cause says that it ended before.
func (s *service) hasBegun(b ruler.Begun) (cause string) {
	select {
	case <-b:
	case <-s.alive.Done():
		select {
		case <-b: // it has done both by now: whoever looks next sees its end
		default:
			cause = "its work ended at once: " + s.how()
		}
	}
	return cause
}

// boot waits until the whole system in the guest is up; it says why it is not.
func (r *Run) boot(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment) (cause string) {
	order := ready.Workload.Order(ready.Workload.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Timeout = patience(t, bootTime)
	res, _, err := g.Ruler().Run(ctx, order)
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		return "its system did not come up: " + err.Error() + diagnosis(g)
	case workload.Failure(res) != "":
		return "its system did not come up: " + workload.Failure(res) + diagnosis(g)
	}
	return ""
}

// anID names a guest that is no trial's own.
func anID() string { return fmt.Sprintf("w-%08x", rand.Uint32()) }

// room says why the host should not get one more guest beside those that there are: it takes more than what is left, by what they take each.
// promised is what one of them may still come to. Both are bytes.
func room(guests int, each, promised int64) string {
	left, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return err.Error()
	}
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return err.Error()
	}
	if keep := int64(reserve*float64(all)) + promised; left-each < keep {
		return fmt.Sprintf("the host has %d MiB of memory left, of which %d are kept, and a guest takes about %d: it has room for %d such guests",
			left/notebook.MiB, keep/notebook.MiB, each/notebook.MiB, guests)
	}
	return ""
}

// settle waits until the guests take no more memory; restless says that they did not come to that.
func settle(ctx context.Context, guests []Guest, t notebook.Treatment) (took time.Duration, restless string, err error) {
	began := time.Now()
	last := int64(-1)
	for pause := patience(t, stillFor); ; {
		sum := int64(0)
		for _, g := range guests {
			n, err := g.Resident()
			if err != nil {
				return 0, "", err
			}
			sum += n
		}
		grown := float64(sum-last) / float64(max(sum, 1))
		took = time.Since(began)
		switch {
		case last >= 0 && max(grown, -grown) < still:
			return took, "", nil
		case took > patience(t, settling):
			return took, fmt.Sprintf("%d guests still took %.1f %% more memory in %v, after %v", len(guests), 100*grown, pause, took.Round(time.Second)), nil
		}
		last = sum
		select {
		case <-ctx.Done():
			return took, "", ctx.Err()
		case <-time.After(pause): // it is what is measured: how much they take in that time
		}
	}
}

// merged weighs the guests with their pages merged, and takes these apart again.
func (r *Run) merged(ctx context.Context, setting string, guests []Guest, n int, asked Inside) (w memorykind.Weight, cause string, err error) {
	merging, err := r.Lab.Merge(ctx, setting)
	if err != nil {
		return w, "KSM: " + err.Error(), nil
	}
	defer func() {
		ectx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
		defer cancel()
		if eerr := merging.End(ectx); eerr != nil {
			err = errors.Join(err, fmt.Errorf("KSM's settings: %w; `tare clean` tries again", eerr))
		}
	}()
	mctx, cancel := context.WithTimeout(ctx, mergingTime)
	defer cancel()
	ksm, err := merging.Settle(mctx)
	if err != nil {
		return w, "KSM: " + err.Error(), nil
	}
	if w, err = r.Lab.Weigh(ctx, guests, asked); err != nil {
		return w, err.Error(), nil
	}
	w.Guests, w.KSM = n, ksm
	return w, "", nil
}

// figures are those of memorykind.Config.Figures, as far as the weights have them.
func figures(m memorykind.Config, weights []memorykind.Weight) map[string]float64 {
	f := map[string]float64{}
	set := func(of notebook.Metric, bytes float64) { f[of.Name] = bytes / notebook.MiB }
	for _, ksm := range []bool{false, true} {
		var all []memorykind.Weight
		for _, w := range weights {
			if (w.KSM != nil) == ksm && w.Guests > 0 {
				all = append(all, w)
			}
		}
		if len(all) == 0 {
			continue
		}
		first, last := all[0], all[len(all)-1]
		mean, alone, added, asymptote := memorykind.PSS, memorykind.Alone, memorykind.Added, memorykind.Asymptote
		if ksm {
			mean, alone, added, asymptote = memorykind.Merged, memorykind.AloneKSM, memorykind.AddedKSM, memorykind.LimitKSM
		}
		n := float64(last.Guests)
		set(mean, float64(last.PSS)/n)
		if first.Guests == 1 && len(all) > 1 {
			set(alone, float64(first.PSS))
		}
		if len(all) > 1 {
			before := all[len(all)-2]
			set(added, float64(last.PSS-before.PSS)/float64(last.Guests-before.Guests))
		}
		if len(all) > 2 {
			var x, y []float64
			for _, w := range all {
				x, y = append(x, 1/float64(w.Guests)), append(y, float64(w.PSS)/float64(w.Guests))
			}
			limit, _ := stat.LinearRegression(x, y, nil, false) // where 1/n is 0
			set(asymptote, limit)
		}
		if ksm {
			continue
		}
		if r := first.Last; m.Frames && first.Guests == 1 && len(all) > 1 && r != nil && r.RAM != nil && r.RAM.Why == "" {
			set(memorykind.IdleAlone, float64(r.RAM.Idle()))
		}
		if first.Guests == 1 && len(all) > 1 {
			set(memorykind.AloneRSS, float64(first.RSS))
		}
		for of, bytes := range map[notebook.Metric]int64{
			memorykind.RSS: last.RSS, memorykind.USS: last.USS, memorykind.Tables: last.Tables,
			memorykind.Anonymous: last.Anonymous, memorykind.File: last.File,
		} {
			set(of, float64(bytes)/n)
		}
		if last.Kernel != nil {
			set(memorykind.Kernel, float64(*last.Kernel)/n)
		}
		if last.KernelCopy > 0 {
			set(memorykind.Copy, float64(last.KernelCopy)/n)
		}
		if last.Last != nil && last.Last.Duplicates != nil {
			d := last.Last.Duplicates
			if m.Frames {
				set(memorykind.AnonAnon, float64(d.Within.AnonAnon+d.Host.AnonAnon+d.Guests.AnonAnon))
				set(memorykind.FileFile, float64(d.Within.FileFile+d.Host.FileFile+d.Guests.FileFile))
				set(memorykind.AnonFile, float64(d.Within.AnonFile+d.Host.AnonFile+d.Guests.AnonFile))
			}
			set(memorykind.Within, float64(d.Within.Sum()))
			set(memorykind.WithHost, float64(d.Host.Sum()))
			if last.Guests > 1 {
				set(memorykind.WithGuests, float64(d.Guests.Sum()))
			}
		}
	}
	if m.Frames && len(weights) > 0 {
		inside(weights[len(weights)-1].Last, set)
	}
	return f
}

// inside sets the figures of what the guest that came last alone has, where it was asked.
func inside(g *notebook.MemoryGuest, set func(m notebook.Metric, bytes float64)) {
	if g == nil {
		return
	}
	set(memorykind.Own, float64(g.Own))
	r := g.RAM
	if r == nil || r.Why != "" {
		return
	}
	left, idle, ram := r.Emulator.Alike, r.Idle(), int64(0)
	for _, k := range r.Kinds {
		left, ram = left+k.Alike, ram+k.Own
	}
	for of, bytes := range map[notebook.Metric]int64{
		memorykind.Emulator: r.Emulator.Own, memorykind.RAM: ram,
		memorykind.GuestFile: r.Own(notebook.FramesFile, notebook.FramesShared), memorykind.GuestAnon: r.Own(notebook.FramesAnonymous),
		memorykind.GuestCore: r.Own(notebook.KernelFrames...), memorykind.GuestFree: r.Own(notebook.FramesFree),
		memorykind.Left: left, memorykind.Idle: idle, memorykind.Best: g.Own - left - idle,
	} {
		set(of, float64(bytes))
	}
}
