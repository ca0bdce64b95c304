package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/notebook"
)

// Resume fits the plan to a folder that was begun earlier: the same seed and the same treatments. It returns an error if the folder
// holds another study, or if the host can no longer run a part of it.
func (p *Plan) Resume(begun notebook.Study, seedChosen bool) error {
	if err := p.goesOn(begun, seedChosen); err != nil {
		return err
	}
	if begun.Hash != p.Study.Hash {
		return p.another(differs(begun, p.Study))
	}
	p.Study = begun
	p.interleaved()
	return nil
}

// goesOn returns an error if the study cannot continue in a folder, as far as that is known before its workloads are ready.
func (p *Plan) goesOn(begun notebook.Study, seedChosen bool) error {
	if begun.Name != p.Study.Name {
		return fmt.Errorf("the folder holds the study %s, not %s: name another folder with --out", begun.Name, p.Study.Name)
	}
	if what := redesigned(begun.Design, p.Study.Design); what != "" {
		return p.another(what)
	}
	if was := begun.Explain; !slices.Equal(was, p.Study.Explain) {
		what := "it was begun without --explain"
		if len(was) > 0 {
			what = "it was begun with --explain=" + strings.Join(was, ",")
		}
		return p.another(what)
	}
	if was := begun.LoadFrom; was != p.Study.LoadFrom {
		return p.another("its load ran " + cmp.Or(strings.Replace(was, "ssh:", "on ssh:", 1), "on this host"))
	}
	if seedChosen && begun.Seed != p.Study.Seed {
		return fmt.Errorf("the folder was begun with --seed %d, not %d: leave --seed out, or name another folder with --out", begun.Seed, p.Study.Seed)
	}
	for _, t := range begun.Treatments {
		if slices.ContainsFunc(p.Study.Treatments, func(now notebook.Treatment) bool { return now.ID == t.ID }) {
			continue
		}
		i := slices.IndexFunc(p.Study.LeftOut, func(l notebook.LeftOut) bool { return l.Treatment.ID == t.ID })
		if i < 0 {
			return p.another(fmt.Sprintf("it was begun with %q, which this command does not ask for", t.ID))
		}
		return &notebook.Error{Says: notebook.Say("treatment-cannot-go-on", "treatment", t.ID, "cause", p.Study.LeftOut[i].Reason)}
	}
	return nil
}

func (p *Plan) another(what string) error {
	return fmt.Errorf("the folder holds another run of %s: %s; name another folder with --out", p.Study.Name, what)
}

// percent formats a share; 0 is "none".
func percent(share float64) string {
	if share == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g%%", 100*share)
}

// redesigned describes how one design differs from another; "" if it does not.
func redesigned(was, is notebook.Design) string {
	is.Seen = was.Seen     // users do not choose it, and a folder continues as it was begun
	is.Margin = was.Margin // no round depends on it, and older folders have none
	rounds := func(d notebook.Design) string {
		if d.Floor == d.Cap {
			return fmt.Sprint(d.Cap)
		}
		return fmt.Sprintf("%d to %d", d.Floor, d.Cap)
	}
	for _, d := range []struct {
		what    string
		was, is any
	}{
		{"rounds", rounds(was), rounds(is)},
		{"rounds of emulated treatments", was.Emulated, is.Emulated},
		{"as precision", percent(was.Precision), percent(is.Precision)},
		{"as the margin to decide at", percent(was.Decide), percent(is.Decide)},
		{"trials in a guest", was.Trials, is.Trials},
		{"warm-ups in a guest", was.Warmups, is.Warmups},
		{"as the reference (--against)", cmp.Or(was.Against, notebook.BM), cmp.Or(is.Against, notebook.BM)},
		{"s as the timeout of a trial", was.TimeoutS, is.TimeoutS},
	} {
		if d.was != d.is {
			return fmt.Sprintf("it was begun with %v %s, but this command asks for %v", d.was, d.what, d.is)
		}
	}
	if was != is {
		return "it was begun with another design"
	}
	return ""
}

// differs describes how two studies with the same name and design differ.
func differs(was, is notebook.Study) string {
	for label, image := range was.Images {
		if now, ok := is.Images[label]; ok && now != image {
			return "the image or the input of " + label + " has changed"
		}
	}
	before, now := strings.Split(was.Source, "\n"), strings.Split(is.Source, "\n")
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return fmt.Sprintf("line %d of its study file was %q and is now %q", i+1, strings.TrimSpace(before[i]), strings.TrimSpace(now[i]))
		}
	}
	if len(before) != len(now) {
		return fmt.Sprintf("its study file had %d lines and now has %d", len(before), len(now))
	}
	for _, t := range is.Treatments {
		planned := func(o notebook.Treatment) bool { return o.ID == t.ID }
		if !slices.ContainsFunc(was.Treatments, planned) && !slices.ContainsFunc(was.LeftOut, func(l notebook.LeftOut) bool { return planned(l.Treatment) }) {
			return fmt.Sprintf("it was begun without %q, which this command asks for", t.ID)
		}
	}
	if was.Tare != is.Tare {
		return fmt.Sprintf("it was begun by tare %s, and this is tare %s", was.Tare, is.Tare)
	}
	return "--only, --accel, --vm-kernel, --rounds, or what a workload runs has changed"
}
