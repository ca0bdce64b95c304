package study

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tare/lab/measure"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
)

// What takes time in addition to guests and runs, in seconds: from an idle host to a busy host. Measured on hosts of two cores in
// November 2026.
var (
	opening   = notebook.Span{Low: 0.3, High: 4}   // the host is inspected
	reporting = notebook.Span{Low: 0.1, High: 3}   // the summary and the report
	probing   = notebook.Span{Low: 1, High: 25}    // a small VM is booted to find its accelerator
	idling    = notebook.Span{Low: 0, High: 5}     // what idle guests cost is measured once on a host
	building  = notebook.Span{Low: 10, High: 90}   // a root from Debian packages
	fetching  = notebook.Span{Low: 0, High: 15}    // an input, or an image by its reference
	preparing = notebook.Span{Low: 0, High: 20}    // a workload's own preparation, which is kept
	compiling = notebook.Span{Low: 0, High: 2}     // a program of the workload
	importing = notebook.Span{Low: 0, High: 12}    // a root into an engine, or onto a VM's disk
	settling  = notebook.Span{Low: 0, High: 0.05}  // between two runs in a guest
	hinted    = notebook.Span{Low: 0.6, High: 2}   // how a run differs from its workload's hint
	seen      = notebook.Span{Low: 0.7, High: 1.5} // how a run differs from the one in the rehearsal
	emulation = notebook.Span{Low: 1, High: 14}    // how much longer work takes in an emulated VM
	virtual   = notebook.Span{Low: 1, High: 1.3}   // and in one with hardware virtualization

	rootBytes = notebook.Span{Low: 80e6, High: 700e6} // of a root with its packages, once in each place that keeps it
)

// estimate predicts how long a planned study takes.
type estimate struct {
	*planner
	facts Facts
	works map[string]studyfile.Work // by label
	ready bool                      // the workloads are ready, and were rehearsed
}

// preview is the plan's preview.
func (e estimate) preview() notebook.Preview {
	s := e.Study
	v := notebook.Preview{
		Schema: notebook.PreviewSchema, Study: s.Name, Title: s.Title, Treatments: s.Treatments, LeftOut: s.LeftOut, Untried: []notebook.Untried{},
		HostCode: e.asked.HostCode(), BudgetS: e.facts.Budget.Seconds(),
	}
	if !e.ready {
		e.prepare(&v)
		v.Seconds = opening
	}
	v.Seconds = v.Seconds.Plus(v.Preparing).Plus(reporting)
	for i, t := range s.Treatments {
		least, most := e.rounds(t)
		done := len(e.facts.Done[t.ID])
		v.Done += min(done, most)
		rounds := notebook.Span{Low: float64(max(least-done, 0)), High: float64(max(most-done, 0))}
		if i == 0 {
			v.Rounds[0] = least
		}
		v.Rounds = [2]int{min(v.Rounds[0], least), max(v.Rounds[1], most)}
		v.Guests = v.Guests.Plus(rounds)
		each := float64(e.warmups(t) + e.trials(t))
		runs := rounds.Times(notebook.Span{Low: each, High: each})
		v.Trials = v.Trials.Plus(runs)
		run, known := e.run(t)
		if !known {
			v.More = v.More.Plus(runs)
			if !slices.Contains(v.Unknown, t.Workload) {
				v.Unknown = append(v.Unknown, t.Workload)
			}
		}
		lasts := rounds.Times(e.guest(t, run, each))
		v.Seconds = v.Seconds.Plus(lasts)
		v.Works = addTo(v.Works, t.Label(), rounds, lasts)
	}
	if b := v.BudgetS; b > 0 {
		v.Seconds = v.Seconds.AtMost(b)
	}
	return v
}

// addTo adds guests and their time to the part of a work.
func addTo(works []notebook.PreviewPart, label string, guests, seconds notebook.Span) []notebook.PreviewPart {
	i := slices.IndexFunc(works, func(p notebook.PreviewPart) bool { return p.Work == label })
	if i < 0 {
		i, works = len(works), append(works, notebook.PreviewPart{Work: label})
	}
	works[i].Guests, works[i].Seconds = works[i].Guests.Plus(guests), works[i].Seconds.Plus(seconds)
	return works
}

// guest is the time of one guest with its runs.
func (e estimate) guest(t notebook.Treatment, run notebook.Span, runs float64) notebook.Span {
	making := e.facts.Guest(t)
	sum := making.Plus(run.Plus(settling).Times(notebook.Span{Low: runs, High: runs}))
	if w := e.works[t.Label()].Workload; w != nil && w.Service != nil {
		sum = sum.Plus(notebook.Span{Low: 0.1, High: 8}) // until the service is ready
	}
	if e.Study.Design.Looks() > 0 && !e.rules.Search && len(e.Study.Explain) == 0 {
		sum.High += 2 * making.High // the run gives its guests more trials if that is faster
	}
	return sum
}

// rounds are the least and the greatest number of a treatment's rounds.
func (e estimate) rounds(t notebook.Treatment) (least, most int) {
	d := e.Study.Design
	most = d.Most(t)
	if d.Looks() == 0 {
		return most, most
	}
	return min(cmp.Or(t.Rounds, d.Floor), most), most
}

// trials is the number of measured and traced runs in a guest, at least.
func (e estimate) trials(t notebook.Treatment) int {
	n := e.Study.Design.Fewest(t)
	if len(e.Study.Explain) > 0 {
		n *= 2
	}
	return n
}

func (e estimate) warmups(t notebook.Treatment) int {
	if w := e.works[t.Label()].Workload; w != nil && w.Load != nil && len(w.Load.Warm) > 0 {
		return 1 // the load's own
	}
	return e.Study.Design.Warmups
}

// run is the time of one run of a treatment.
func (e estimate) run(t notebook.Treatment) (s notebook.Span, known bool) {
	if e.facts.Run != nil {
		if s, known = e.facts.Run(t); known {
			return s, true
		}
	}
	work, known := e.usual(t)
	switch {
	case !notebook.HasMachine(t.Platform):
	case t.Accelerator == notebook.KVM:
		work = work.Times(virtual)
	default:
		work = work.Times(emulation)
	}
	if timed, is := e.config.(measure.Timed); is {
		return timed.Lasts(t, e.facts.Guest(t), work), true
	}
	return work, known
}

// usual is the time of one run on bare metal.
func (e estimate) usual(t notebook.Treatment) (work notebook.Span, known bool) {
	w := e.works[t.Label()].Workload
	if w == nil {
		return work, false
	}
	if s := e.rehearsed(t, w.Length); s > 0 {
		return notebook.Span{Low: s, High: s}.Times(seen), true
	}
	takes := e.works[t.Label()].Lasts()
	least, most := takes.On(cmp.Or(t.Instance.Cores, 1))
	return notebook.Span{Low: least.Seconds(), High: most.Seconds()}.Times(hinted), takes.OneCore > 0
}

// prepare estimates what happens before the first round.
func (e estimate) prepare(v *notebook.Preview) {
	roots, engines, rehearsed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	works := map[*workload.Workload]bool{}
	for _, t := range e.Study.Treatments {
		of := e.works[t.Label()]
		w := of.Workload
		root := rootOf(w)
		if !roots[root] && !e.facts.Built(of) {
			v.Roots++
			v.Disk = v.Disk.Plus(rootBytes)
			if w.Image.Reference != "" {
				v.Preparing = v.Preparing.Plus(fetching)
			} else {
				v.Preparing = v.Preparing.Plus(building)
			}
		}
		roots[root] = true
		if place := t.Platform + " " + t.Engine + " " + root; t.Platform != notebook.BM && !engines[place] {
			engines[place] = true
			v.Preparing = v.Preparing.Plus(importing)
			v.Disk.High += rootBytes.High
		}
		if !works[w] {
			works[w] = true
			v.Preparing = v.Preparing.Plus(e.readying(w))
		}
		if label := t.Label(); t.Platform == notebook.BM && !rehearsed[label] && len(e.facts.Done) == 0 {
			rehearsed[label] = true
			run, _ := e.run(t)
			all := e.facts.Guest(t)
			all.Low += min(run.Low, rehearsing.Seconds())
			all.High += rehearsing.Seconds() + run.High
			v.Preparing = v.Preparing.Plus(all)
		}
	}
	if len(e.accels) > 0 {
		v.Preparing = v.Preparing.Plus(probing)
	}
	v.Preparing = v.Preparing.Plus(idling)
	v.Disk.High = math.Ceil(v.Disk.High)
}

// readying is the time until a workload's files are ready, without its root.
func (e estimate) readying(w *workload.Workload) (s notebook.Span) {
	inputs := len(w.Inputs)
	if w.Input != nil {
		inputs++
	}
	for range inputs {
		s = s.Plus(fetching)
	}
	for range w.Build {
		s = s.Plus(compiling)
	}
	if len(w.Prepare) > 0 {
		s = s.Plus(preparing)
	}
	return s
}

// rootOf names the root of a workload.
func rootOf(w *workload.Workload) string {
	if w.Image.Reference != "" {
		return w.Image.Reference
	}
	return w.Image.Suite + " " + strings.Join(slices.Sorted(slices.Values(w.Image.Packages)), " ")
}
