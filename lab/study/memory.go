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
	"tare/lab/workload"
	"tare/notebook"
)

// Memory is how a study file says how guests are weighed: so many of a treatment are made, one beside the other, each doing the workload's work,
// and what they take of the host's memory is read at each of the numbers (paper "virtualization-overheads", sections 6.3 to 6.6.1).
type Memory struct {
	Guests []int  `yaml:"guests,omitempty"` // default 1 and 2
	KSM    string `yaml:"ksm,omitempty"`    // one of notebook.KSMSettings; then they are weighed again with their pages merged
}

const (
	mostGuests  = 1000
	stillFor    = time.Second      // guests that take no more for so long have settled; three times that where they are emulated
	still       = 0.005            // as a share of what they take
	settling    = time.Minute      // at most; three times that where they are emulated
	mergingTime = 10 * time.Minute // that the kernel may take until it merges no more
	reserve     = 0.05             // of the host's memory, which guests are not given
)

// parse reads it; a nil one is none.
func (m *Memory) parse() (*notebook.Memory, error) {
	if m == nil {
		return nil, nil
	}
	out := &notebook.Memory{Guests: slices.Clone(m.Guests), KSM: m.KSM}
	if len(out.Guests) == 0 {
		out.Guests = []int{1, 2}
	}
	for i, n := range out.Guests {
		if n < 1 || n > mostGuests || i > 0 && n <= out.Guests[i-1] {
			return nil, fmt.Errorf("guests: %v: numbers from 1 to %d, each greater than the one before, were expected", m.Guests, mostGuests)
		}
	}
	if m.KSM != "" && !slices.Contains(notebook.KSMSettings, m.KSM) {
		return nil, fmt.Errorf("ksm: %q: %s was expected", m.KSM, oneOf(notebook.KSMSettings))
	}
	return out, nil
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
	m := *r.Plan.Study.Memory
	if rehearsal {
		m = notebook.Memory{Guests: []int{1}}
	}
	tr.Start = time.Now().UTC()
	defer func() { tr.HostS = time.Since(tr.Start).Seconds() }()
	var guests []Guest
	var works []*service
	defer func() {
		for i, s := range slices.Backward(works) {
			err = errors.Join(err, s.takeDown(ctx))
			if i > 0 {
				err = errors.Join(err, destroy(ctx, guests[i]))
			}
		}
	}()
	for _, n := range m.Guests {
		for len(guests) < n {
			if ctx.Err() != nil {
				return tr, nil // its caller sees that
			}
			nth := len(guests) + 1
			g, s, cause, err := r.resident(ctx, first, ready, t, guests, tr.Weights)
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
		w, err := r.Lab.Weigh(ctx, guests)
		if err != nil {
			tr.Failure = err.Error()
			return tr, nil
		}
		w.Guests, w.SettledS = n, took.Seconds()
		tr.Weights = append(tr.Weights, w)
		if m.KSM != "" {
			merged, cause, err := r.merged(ctx, m.KSM, guests, n)
			if cause != "" || err != nil {
				tr.Failure = cause
				return tr, err
			}
			if merged.KSM.Unsettled {
				tr.Warnings = append(tr.Warnings, fmt.Sprintf("with %d guests the kernel still merged pages after %v", n, mergingTime))
			}
			tr.Weights = append(tr.Weights, merged)
		}
		if i := slices.IndexFunc(works, (*service).over); i >= 0 {
			tr.Failure = fmt.Sprintf("the work in guest %d ended while it was weighed: %s", i+1, works[i].how())
			return tr, nil
		}
	}
	tr.Figures = figures(tr.Weights)
	tr.Value = tr.Figures[notebook.WeightPSS.Name]
	return tr, nil
}

// resident is one more guest with its work in it, the first that is there already. cause says why there is none; the guest is none then, unless it
// has to be destroyed with the others.
func (r *Run) resident(ctx context.Context, first Guest, ready *workload.Ready, t notebook.Treatment, guests []Guest, weights []notebook.Weight) (g Guest, s *service, cause string, err error) {
	g = first
	if len(guests) > 0 {
		if cause := room(guests, weights); cause != "" {
			return nil, nil, cause, nil
		}
		pctx, cancel := context.WithTimeout(ctx, provisionTimeout)
		g, err = r.Lab.Provision(pctx, t, anID(), ready)
		cancel()
		if err != nil {
			return nil, nil, "no guest: " + err.Error(), nil
		}
	}
	w := ready.Workload
	if w.Service != nil {
		s, cause, err = r.serve(ctx, g, t, anID(), ready)
		return g, s, cause, err
	}
	begun := make(begun)
	order := w.Order(w.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Bounds = begun
	s = begin(ctx, g, t, ready, order)
	select {
	case <-begun:
	case <-s.alive.Done():
		cause = "its work ended at once: " + s.how()
	}
	return g, s, cause, nil
}

// anID names a guest that is no trial's own.
func anID() string { return fmt.Sprintf("w-%08x", rand.Uint32()) }

// begun is closed when an order's work begins.
type begun chan struct{}

// Begin implements ruler.Bounds.
func (b begun) Begin() { close(b) }

// End implements it.
func (b begun) End() {}

// room says why the host should not get one more guest: it takes more than what is left, by what those that are there take each.
func room(guests []Guest, weights []notebook.Weight) string {
	left, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return err.Error()
	}
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return err.Error()
	}
	each := int64(0)
	if n := len(weights); n > 0 {
		each = weights[n-1].RSS / int64(weights[n-1].Guests)
	}
	if keep := int64(reserve * float64(all)); left-each < keep {
		return fmt.Sprintf("the host has %d MiB of memory left, of which %d are kept, and a guest takes about %d: it has room for %d such guests",
			left/notebook.MiB, keep/notebook.MiB, each/notebook.MiB, len(guests))
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
func (r *Run) merged(ctx context.Context, setting string, guests []Guest, n int) (w notebook.Weight, cause string, err error) {
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
	if w, err = r.Lab.Weigh(ctx, guests); err != nil {
		return w, err.Error(), nil
	}
	w.Guests, w.KSM = n, ksm
	return w, "", nil
}

// figures are those of notebook.Memory.Figures, as far as the weights have them.
func figures(weights []notebook.Weight) map[string]float64 {
	f := map[string]float64{}
	set := func(m notebook.Metric, bytes float64) { f[m.Name] = bytes / notebook.MiB }
	for _, ksm := range []bool{false, true} {
		var all []notebook.Weight
		for _, w := range weights {
			if (w.KSM != nil) == ksm && w.Guests > 0 {
				all = append(all, w)
			}
		}
		if len(all) == 0 {
			continue
		}
		first, last := all[0], all[len(all)-1]
		mean, alone, added, asymptote := notebook.WeightPSS, notebook.WeightAlone, notebook.WeightAdded, notebook.WeightAsymptote
		if ksm {
			mean, alone, added, asymptote = notebook.WeightMerged, notebook.WeightAloneKSM, notebook.WeightAddedKSM, notebook.WeightLimitKSM
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
		if first.Guests == 1 && len(all) > 1 {
			set(notebook.WeightAloneRSS, float64(first.RSS))
		}
		for m, bytes := range map[notebook.Metric]int64{
			notebook.WeightRSS: last.RSS, notebook.WeightUSS: last.USS, notebook.WeightTables: last.Tables,
			notebook.WeightAnonymous: last.Anonymous, notebook.WeightFile: last.File,
		} {
			set(m, float64(bytes)/n)
		}
		if last.Kernel != nil {
			set(notebook.WeightKernel, float64(*last.Kernel)/n)
		}
		if last.Last != nil && last.Last.Duplicates != nil {
			d := last.Last.Duplicates
			set(notebook.WeightWithin, float64(d.Within.Sum()))
			set(notebook.WeightWithHost, float64(d.Host.Sum()))
			if last.Guests > 1 {
				set(notebook.WeightWithGuests, float64(d.Guests.Sum()))
			}
		}
	}
	return f
}
