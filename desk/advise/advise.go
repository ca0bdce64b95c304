// Package advise ranks what a study measured, and says which choices are not distinguishable from the first. It is a pure
// function of what was read. docs/advise.md says how the ranking is made; package apply writes what a choice stands for.
//
// What it will not do: rank a number taken under software emulation, or one that the A/A check has put in doubt, or
// one without an interval; they are listed separately, with the reason.
package advise

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/price"
	"tare/notebook"
	"tare/stats"
)

// Preference is what is to be small, or large where more of the metric is better.
type Preference string

const (
	Latency Preference = "latency" // the metric itself
	Cost    Preference = "cost"    // cores × the metric: what the work costs in core-seconds; where higher is better, the metric over the cores
)

// Options say what is wanted.
type Options struct {
	Workload string     // name, or name with parameters as in notebook.Label; empty: all
	Metric   string     // a secondary metric of the workload (Study.Also); empty: its metric
	Prefer   Preference // empty: Latency
	Exclude  []string   // platforms, engines or provisionings that are not wanted
	Instance string     // only this size: a name of the study's, or cores/memory; empty: all

	Objective *data.Objective // of a capacity: rank what it costs to keep it; nil: rank as Prefer says
	Demand    float64         // requests a second, with an objective; 0: as many as each instance can answer
	Prices    *price.List     // with an objective
}

// Advice is one ranking for each host, workload with its parameters, and image.
type Advice struct {
	Rankings []Ranking
}

// Ranking orders the choices for one work on one host, best first.
type Ranking struct {
	Host     string
	Workload string // with its parameters
	Metric   notebook.Metric
	Prefer   Preference
	ByRatio  bool // of a size at which bare metal was not measured: the values are overhead ratios
	Networks bool // the treatments differ in how they are connected: each is named with it
	Choices  []Choice
	Beside   []Comparison // of the first choice with one or two others that say why it is first
	Apart    []Apart
	Offers   *Offers // what the choices cost; nil: no objective was given
	Doubts   []data.Doubt
	Wanted   Options
	Sizes    []string // names of the instance types that were measured
	AtSize   bool     // the one that was asked for among them

	OnHost notebook.Host
	Image  notebook.Image
	Port   int // where the workload's service listens; 0: it has none
}

// Comparison compares another choice with the first: the other choice's value over the first choice's.
type Comparison struct {
	Choice  int // index in Ranking.Choices
	Against stats.Quotient
}

// Choice is one treatment in a ranking. Numbers that are not known are NaN.
type Choice struct {
	Rank      int
	Treatment notebook.Treatment
	Value     float64 // the ranked value; the worse end of its interval decides: High, or Low where higher is better
	Ratio     float64 // the metric over bare metal's at this size
	Span              // the intervals of Value and Ratio
	Predicted bool    // predicted by the model, not measured
	Tied      bool    // the leader, or not distinguishable from the leader
	Near      bool    // tied, and Value is not beyond the leader's worse end: simplicity decides among such choices
	// All are intervals that hold for all choices of the ranking at once (Bonferroni), and so for the choice with the best value.
	All Span
	// Against is Value over the leader's. The data choose the leader, so the interval is corrected for the number of pairs of choices.
	Against stats.Quotient
	CPUs    []int        // the host's CPUs that its guests could use; none for a prediction
	Doubts  []data.Doubt // warnings for whoever chooses it
	Leads   bool         // its interval's worse end is the best
	row     *data.Row    // has the ranked values; nil for a prediction
	weight  float64      // factor of these values

	at func(alpha float64) Span // intervals of which this share may miss
}

// Span are the intervals of a choice's Value and of its Ratio.
type Span struct{ Low, High, RatioLow, RatioHigh float64 }

// Apart is what is not ranked, and why.
type Apart struct {
	Treatment notebook.Treatment
	Reason    data.Doubt
}

// Of ranks what was read. Errors are those of options that choose nothing.
func Of(s *data.Summary, o Options) (*Advice, error) {
	if o.Prefer == "" {
		o.Prefer = Latency
	}
	if o.Prefer != Latency && o.Prefer != Cost {
		return nil, fmt.Errorf("--prefer %q: must be latency or cost", o.Prefer)
	}
	if err := o.offered(); err != nil {
		return nil, err
	}
	a := &adviser{s: s, o: o}
	if err := a.choose(); err != nil {
		return nil, err
	}
	if o.Objective != nil {
		var err error
		if a.groups, err = a.sought(); err != nil {
			return nil, err
		}
	}
	out := &Advice{}
	for _, g := range a.groups {
		out.Rankings = append(out.Rankings, a.rank(g))
	}
	return out, nil
}

// adviser is advice in the making.
type adviser struct {
	s      *data.Summary
	o      Options
	size   *notebook.Instance // that was asked for
	groups []*group
	fits   map[float64]*model.Model // by the share of intervals that may miss
}

// group is what one ranking is about.
type group struct {
	rows   []*data.Row        // data.SameWork
	work   notebook.Treatment // the first of them: its workload and parameters are those of all
	label  string
	metric notebook.Metric // the workload's own
	figure notebook.Metric // that is ranked
	cores  int             // that the host had online
	port   int             // where the workload's service listens; 0: it has none
}

// labelOf names a row's work.
func labelOf(r *data.Row) string { return r.Treatment.Label() }

// choose makes the groups, and refuses options that nothing matches.
func (a *adviser) choose() error {
	words := map[string]bool{notebook.BM: true, notebook.CN: true, notebook.VM: true, notebook.VMCN: true}
	for _, p := range notebook.Provisionings {
		words[p] = true
	}
	for _, r := range a.s.Rows {
		words[r.Treatment.Engine] = true
	}
	labels := data.Distinct(a.s.Rows, labelOf)
	wanted := slices.DeleteFunc(slices.Clone(a.s.Rows), func(r *data.Row) bool {
		return a.o.Workload != "" && a.o.Workload != labelOf(r) && a.o.Workload != r.Treatment.Workload
	})
	for _, rows := range data.Together(wanted, data.SameWork) {
		g := &group{rows: rows, work: rows[0].Treatment, label: labelOf(rows[0]), metric: rows[0].Metric, figure: rows[0].Metric}
		for _, r := range rows {
			g.cores = max(g.cores, r.HostCores)
			for _, v := range r.Values {
				if p := a.s.Folders[v.Folder].Study.Ports[g.work.Workload]; g.port == 0 && 0 < p && p < 1<<16 {
					g.port = p
				}
			}
		}
		a.groups = append(a.groups, g)
	}
	if len(labels) == 0 {
		return fmt.Errorf("nothing was measured in %s: `tare run` goes on with a study", a.s.Folders[0].Dir)
	}
	if len(a.groups) == 0 {
		return fmt.Errorf("--workload %q was not measured: must be one of %s", a.o.Workload, strings.Join(labels, ", "))
	}
	delete(words, "")
	for i, w := range a.o.Exclude {
		if a.o.Exclude[i] = notebook.PlatformNamed(w); !words[a.o.Exclude[i]] {
			return fmt.Errorf("--exclude %q: must be one of %s", w, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
	}
	if err := a.chooseFigure(); err != nil {
		return err
	}
	return a.chooseSize()
}

// chooseFigure keeps the groups that have the figure that was asked for.
func (a *adviser) chooseFigure() error {
	if a.o.Metric == "" {
		return nil
	}
	var known []string
	var kept []*group
	var refused error
	for _, g := range a.groups {
		all := []notebook.Metric{g.metric}
		for _, r := range g.rows {
			for _, f := range r.Secondary {
				if !slices.Contains(all, f.Metric) {
					all = append(all, f.Metric)
				}
			}
		}
		for _, m := range all {
			var why error
			switch {
			case !m.Directed():
				why = errors.New("a metric without a direction: neither higher nor lower values are better")
			case m.Better != "":
				if !slices.Contains(known, m.Name) {
					known = append(known, m.Name)
				}
			case strings.HasSuffix(m.Unit, "/s"):
				why = fmt.Errorf("a rate (%s) whose workload does not say that higher is better (better: higher)", m.Unit)
			case m.Unit == "1" && m != g.metric:
				why = errors.New("a count, which cannot rank configurations")
			case !slices.Contains(known, m.Name):
				known = append(known, m.Name)
			}
			switch {
			case m.Name != a.o.Metric && m.Name != notebook.MetricKey(g.rows[0].Kind, a.o.Metric):
			case why != nil && refused == nil:
				refused = why
			case why == nil:
				g.figure = m
				kept = append(kept, g)
			}
		}
	}
	if len(kept) == 0 && refused != nil {
		return fmt.Errorf("--metric %q is %w: must be one of %s", a.o.Metric, refused, strings.Join(known, ", "))
	}
	if len(kept) == 0 {
		return fmt.Errorf("--metric %q was not measured: must be one of %s", a.o.Metric, strings.Join(known, ", "))
	}
	a.groups = kept
	return nil
}

// chooseSize finds the size that was asked for, in the study or as cores/memory.
func (a *adviser) chooseSize() error {
	if a.o.Instance == "" {
		return nil
	}
	var names []string
	for _, g := range a.groups {
		for _, r := range g.rows {
			i := r.Treatment.Instance
			if i.Name == a.o.Instance {
				a.size = &i
				return nil
			}
			if !slices.Contains(names, i.Name) {
				names = append(names, i.Name)
			}
		}
	}
	i, err := notebook.ParseInstance(a.o.Instance)
	if err != nil {
		return fmt.Errorf("--instance %q: %w; name a size that was measured (%s), or cores/memory like 4/16GB", a.o.Instance, err, strings.Join(names, ", "))
	}
	a.size = &i
	return nil
}

// wants says whether a treatment is of the size and the kinds that were asked for.
func (a *adviser) wants(t notebook.Treatment) bool {
	if a.size != nil && !a.size.SameSize(t.Instance) {
		return false
	}
	return !slices.ContainsFunc(a.o.Exclude, func(w string) bool {
		return w == t.Platform || w == t.Engine || w == t.Provisioning
	})
}

// values are a row's in the metric that is ranked.
func (g *group) values(r *data.Row) []data.Value { return g.of(r).Values }

// of is a row in the metric that is ranked.
func (g *group) of(r *data.Row) *data.Row {
	if g.figure == g.metric {
		return r
	}
	for _, f := range r.Figures {
		if f.Metric == g.figure {
			return f
		}
	}
	x := *r
	x.Values = r.SecondaryValues(g.figure.Name)
	return &x
}

// cpusOf is the list of CPUs that most of a row's guests had, and whether all had it.
func cpusOf(r *data.Row) (cpus []int, all bool) {
	lists := slices.Sorted(maps.Keys(r.CPUs))
	best := ""
	for _, l := range lists {
		// The list is the folder's, so it may be anything.
		if list, err := notebook.ParseCPUList(l); err == nil && len(list) > 0 && (best == "" || r.CPUs[l] > r.CPUs[best]) {
			best, cpus = l, list
		}
	}
	return cpus, len(lists) <= 1
}
