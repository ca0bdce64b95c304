package arrivals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
)

// sampled returns the profiles of a panel's engines over all rates, up to the highest rate for which the study cites the paper. At
// higher rates the engine cannot keep up, and most samples, and so the shares, would come from there.
func sampled(p *chart.Panel) (profiles [][]*Profile, marks []chart.Mark) {
	all, names := risen(p)
	for i, rows := range all {
		var some []*Profile
		for _, r := range rows {
			of, is := r.Of.(*Profile)
			if most := mostPublished(r); is && of.Engine > 0 && (most == 0 || started(r) <= float64(most)) {
				some = append(some, of)
			}
		}
		if some != nil {
			profiles, marks = append(profiles, some), append(marks, names[i])
		}
	}
	return profiles, marks
}

// mostPublished is the highest rate for which the row's study cites a paper; 0: none.
func mostPublished(r *data.Row) (most int) {
	for _, p := range published(r) {
		most = max(most, p.Rate)
	}
	return most
}

// flames draws where the time of an engine goes, function by function, from samples of its stacks.
func flames(p *chart.Panel, stem string) *chart.Figure {
	profiles, marks := sampled(p)
	if len(profiles) == 0 {
		return nil
	}
	drawn := &chart.Flames{}
	var said []string
	for i, some := range profiles {
		root := &chart.Flame{}
		for _, pr := range some {
			for _, s := range pr.Stacks {
				root.Add(s.Frames, s.Kernel, s.N)
			}
		}
		name := marks[i].Names[0]
		drawn.Add(flameHeading(name, root.N), root)
		said = append(said, flameSaid(name, root))
	}
	return &chart.Figure{File: stem + "-flames", Title: p.Beside(flamesTitle), How: flamesHow(ratesOf(p)), Alt: flamesAlt(said), Picture: drawn.Draw()}
}

// together returns the classes of profiles, the largest first, after a first entry for everything in the kernel.
func together(some []*Profile) (classes []Share, samples int) {
	kernel, of := 0, map[string]Share{}
	for _, pr := range some {
		samples, kernel = samples+pr.Engine, kernel+pr.Kernel
		for _, s := range pr.Classes {
			known := of[s.Name]
			of[s.Name] = Share{Name: s.Name, Kernel: s.Kernel, N: known.N + s.N}
		}
	}
	for _, s := range of {
		classes = append(classes, s)
	}
	slices.SortFunc(classes, func(a, b Share) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name)) })
	return append([]Share{{Name: allKernel, Kernel: true, N: kernel}}, classes...), samples
}

// works draws what an engine's samples were doing, by class (Figures 5.3 and 5.4 of "characterization").
func works(p *chart.Panel, stem string) *chart.Figure {
	profiles, marks := sampled(p)
	if len(profiles) == 0 {
		return nil
	}
	b := &chart.Bars{Axis: worksAxis, Pitch: 19, High: 100}
	var said []string
	for i, some := range profiles {
		classes, samples := together(some)
		for _, s := range classes {
			bar := chart.Bar{Mark: marks[i].Part(s.Name, true), Look: chart.White, End: 100 * float64(s.N) / float64(samples)}
			if s.Kernel {
				bar.Look = chart.Grey
			}
			bar.Group, bar.Value, bar.Words, bar.Plain = worksGroup(marks[i].Names[0], samples), bar.End, percent(bar.End), true
			b.Bars = append(b.Bars, bar)
			said = append(said, fmt.Sprintf("%s, %s: %s", marks[i].Names[0], s.Name, bar.Words))
		}
	}
	return &chart.Figure{File: stem + "-classes", Title: p.Beside(worksTitle), How: worksHow(ratesOf(p)), Alt: worksAlt(said), Picture: b.Draw()}
}
