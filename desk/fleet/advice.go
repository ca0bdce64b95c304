package fleet

import (
	"cmp"
	"slices"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/notebook"
)

// Advised is what hosts recommend for one work, each by its own results.
type Advised struct {
	Workload string // with its parameters, as the study asks for them
	Metric   notebook.Metric
	Networks bool
	Hosts    int              // that rank something for it
	Choices  []*AdvisedChoice // the one that is right for most hosts first
}

// AdvisedChoice is a choice with what hosts say of it.
type AdvisedChoice struct {
	Treatment notebook.Treatment // of the first host
	First     int                // hosts that recommend it
	Good      int                // hosts on which it is recommended, or not distinguishable from what is
	Ranked    int                // hosts that rank it
	Worse     []*Host            // hosts on which it is shown to be worse than what they recommend
}

// choiceKey is what a choice is the same by on all hosts.
type choiceKey struct {
	of           notebook.Variant
	provisioning string
	size         data.Size
	cores        int
}

// ranked are the rankings of a host.
type ranked struct {
	advice *advise.Advice
	asked  func(notebook.Treatment) notebook.Treatment
}

// Advise has each host rank its choices, a host at a time on each CPU, and counts. A host that ranks nothing, because the options choose nothing of it,
// does not count; the error is that of the first host if none does.
func (f *Fleet) Advise(o advise.Options, opt data.Options) ([]*Advised, error) {
	of, errs := make([]ranked, len(f.Hosts)), make([]error, len(f.Hosts))
	each(len(f.Hosts), func(at int) {
		s, err := data.Read(f.Hosts[at].Folders, opt)
		if err == nil {
			of[at].advice, err = advise.Of(s, o)
			study := s.Folders[0].Study
			of[at].asked = func(t notebook.Treatment) notebook.Treatment { asked, _ := study.Asked(t); return asked }
		}
		errs[at] = err
	})
	if !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	var all []*Advised
	for at, r := range of {
		if errs[at] == nil {
			all = f.Hosts[at].advised(all, r)
		}
	}
	for _, a := range all {
		slices.SortStableFunc(a.Choices, func(x, y *AdvisedChoice) int {
			return cmp.Or(y.Good-x.Good, y.First-x.First, len(x.Worse)-len(y.Worse))
		})
	}
	return all, nil
}

// advised adds a host's rankings.
func (h *Host) advised(all []*Advised, r ranked) []*Advised {
	for _, ranking := range r.advice.Rankings {
		if len(ranking.Choices) == 0 {
			continue
		}
		asked := r.asked(ranking.Choices[0].Treatment)
		label := asked.Label()
		i := slices.IndexFunc(all, func(a *Advised) bool { return a.Workload == label && a.Metric.Name == ranking.Metric.Name })
		if i < 0 {
			i = len(all)
			all = append(all, &Advised{Workload: label, Metric: ranking.Metric})
		}
		a := all[i]
		a.Hosts++
		a.Networks = a.Networks || ranking.Networks
		for _, c := range ranking.Choices {
			if !c.Predicted {
				a.count(h, c)
			}
		}
	}
	return all
}

// count adds a choice of a host.
func (a *Advised) count(h *Host, c advise.Choice) {
	key := keyOf(c.Treatment)
	i := slices.IndexFunc(a.Choices, func(o *AdvisedChoice) bool { return keyOf(o.Treatment) == key })
	if i < 0 {
		i = len(a.Choices)
		a.Choices = append(a.Choices, &AdvisedChoice{Treatment: c.Treatment})
	}
	o := a.Choices[i]
	o.Ranked++
	if c.Rank == 1 {
		o.First++
	}
	if c.Tied || c.Rank == 1 {
		o.Good++
	} else {
		o.Worse = append(o.Worse, h)
	}
}

func keyOf(t notebook.Treatment) choiceKey {
	return choiceKey{t.Variant(), t.Provisioning, data.SizeOf(t.Instance), t.HostCores}
}
