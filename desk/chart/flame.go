package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
)

const (
	flameRow   = 11.0
	flameText  = 8.0
	flameDepth = 48  // frames that are drawn of a stack
	flameLeast = 0.8 // points that a frame must be wide
)

// flame is a frame with all that was called from it.
type flame struct {
	name   string
	kernel bool
	n      int
	calls  []*flame
}

func (f *flame) add(s data.Stack) {
	f.n += s.N
	for i, name := range s.Frames[:min(len(s.Frames), flameDepth)] {
		kernel := i >= s.Kernel
		j := slices.IndexFunc(f.calls, func(c *flame) bool { return c.name == name && c.kernel == kernel })
		if j < 0 {
			j = len(f.calls)
			f.calls = append(f.calls, &flame{name: name, kernel: kernel})
		}
		f = f.calls[j]
		f.n += s.N
	}
}

// sampled are the profiles of a panel's engines, of all rates together, up to the highest that the study has a paper's numbers of: most samples are of an engine that
// cannot keep up, and so would be the shares.
func (p *Panel) sampled() (profiles [][]*data.Profile, marks []Mark) {
	all, of := p.risen()
	for i, rows := range all {
		var some []*data.Profile
		for _, r := range rows {
			if most := published(r); r.Profile != nil && r.Profile.Engine > 0 && (most == 0 || started(r) <= float64(most)) {
				some = append(some, r.Profile)
			}
		}
		if some != nil {
			profiles, marks = append(profiles, some), append(marks, of[i])
		}
	}
	return profiles, marks
}

// published is the highest rate that a row's study has a paper's numbers of; 0: none.
func published(r *data.Row) (most int) {
	if r.Arrivals != nil {
		for _, p := range r.Arrivals.Published {
			most = max(most, p.Rate)
		}
	}
	return most
}

// rates says at which rates the samples of a panel were taken.
func (p *Panel) rates() string {
	if most := published(p.Rows[0]); most > 0 {
		return fmt.Sprintf("no more than %d containers a second, the paper’s highest rate", most)
	}
	return "all rates"
}

// flames is where the time of an engine goes, function by function, from samples of its stacks.
func flames(p *Panel, stem string) *Figure {
	profiles, marks := p.sampled()
	if len(profiles) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-flames", Title: p.Beside("Where the engine’s time goes, by function")}
	f.How = "Samples of the stacks of the engine’s processes while containers were started at " + p.rates() + ": the width of a box is the share of the samples that have the function in " +
		"this place. At the foot is the program; what a function called stands on it. Grey boxes are the kernel’s, white ones the program’s. Boxes without a name are too narrow for one."
	c := &Picture{w: pageWidth}
	y := 2.0
	var said []string
	for i, some := range profiles {
		root := &flame{}
		for _, pr := range some {
			for _, s := range pr.Stacks {
				root.add(s)
			}
		}
		deep := root.depth(pageWidth-4, root.n)
		c.text(2, y+11, start, smallSize, ink, fmt.Sprintf("%s: %s", marks[i].Names[0], words.Count(root.n, "sample")))
		y += 16
		foot := y + float64(deep)*flameRow
		c.flame(root.calls, 2, pageWidth-2, foot, root.n)
		y = foot + 10
		said = append(said, fmt.Sprintf("%s, of %s: %s", marks[i].Names[0], words.Count(root.n, "sample"), root.said()))
	}
	c.h = y
	f.Alt = "Boxes on each other. " + strings.Join(said, "; ") + "."
	f.Picture = c
	return f
}

// said are its widest calls.
func (f *flame) said() string {
	var all []string
	order(f.calls)
	for _, c := range f.calls[:min(len(f.calls), 4)] {
		all = append(all, fmt.Sprintf("%s %s %%", words.Plain(c.name), words.Digits(100*float64(c.n)/float64(f.n), 2)))
	}
	return strings.Join(all, ", ")
}

// order has them as wide frames first, and those that are as wide by their names.
func order(all []*flame) {
	slices.SortFunc(all, func(a, b *flame) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name)) })
}

// depth is how many rows it takes, in so much room for so many samples.
func (f *flame) depth(room float64, of int) (deep int) {
	for _, c := range f.calls {
		if room*float64(c.n)/float64(of) >= flameLeast {
			deep = max(deep, 1+c.depth(room, of))
		}
	}
	return deep
}

// flame draws calls side by side from x0 on, with what they called on top of them.
func (c *Picture) flame(calls []*flame, x0, x1, foot float64, of int) {
	order(calls)
	scale := (pageWidth - 4) / float64(of)
	for _, f := range calls {
		w := scale * float64(f.n)
		if w < flameLeast || x0+w > x1+0.01 {
			continue
		}
		fill := paper
		if f.kernel {
			fill = grid
		}
		box := rect(x0, foot-flameRow, x0+w, foot)
		c.area(fill, box...)
		c.lines(muted, 0.4, nil, append(box, box[0])...)
		if name := called(words.Plain(f.name), w-4); w > 22 && name != "" {
			c.text(x0+2, foot-2.8, start, flameText, ink, name)
		}
		c.flame(f.calls, x0, x0+w, foot-flameRow, of)
		x0 += w
	}
}

// called is a function's name in so much room: whole; without the path of its package, which all of a library's share; without the package; or the beginning of
// that. Less than a few letters says nothing.
func called(name string, room float64) string {
	for _, cut := range []string{"", "/", "."} {
		if cut != "" {
			if open := strings.IndexByte(name, '('); cut == "." && open > 0 { // (*type).method
				name = name[open:]
			} else if i := strings.LastIndex(name, cut); i >= 0 && i+1 < len(name) {
				name = name[i+1:]
			}
		}
		if width(name, flameText) <= room {
			return name
		}
	}
	if short := fit(name, flameText, room); len([]rune(short)) > 3 {
		return short
	}
	return ""
}

// works is what an engine's samples were at, by classes (Figures 5.3 and 5.4 of "characterization").
func works(p *Panel, stem string) *Figure {
	profiles, marks := p.sampled()
	if len(profiles) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-classes", Title: p.Beside("What the engine is at while containers are started")}
	l := &list{axis: "% of the engine’s samples", pitch: 19, high: 100}
	var said []string
	kernels := []bool{}
	for i, some := range profiles {
		engine, kernel, of := 0, 0, map[string]data.Share{}
		for _, pr := range some {
			engine, kernel = engine+pr.Engine, kernel+pr.Kernel
			for _, s := range pr.Classes {
				known := of[s.Name]
				of[s.Name] = data.Share{Name: s.Name, Kernel: s.Kernel, N: known.N + s.N}
			}
		}
		var classes []data.Share
		for _, s := range of {
			classes = append(classes, s)
		}
		slices.SortFunc(classes, func(a, b data.Share) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name)) })
		classes = append([]data.Share{{Name: "all in the kernel", Kernel: true, N: kernel}}, classes...)
		group := fmt.Sprintf("%s, %s", marks[i].Names[0], words.Count(engine, "sample"))
		for _, s := range classes {
			share := 100 * float64(s.N) / float64(engine)
			m := Mark{Group: group, Names: []string{s.Name}, style: marks[i].style, Value: share, Words: words.Digits(share, 3) + " %", Plain: true}
			m.Low, m.High = math.NaN(), math.NaN()
			l.marks, kernels = append(l.marks, m), append(kernels, s.Kernel)
			said = append(said, fmt.Sprintf("%s, %s: %s", marks[i].Names[0], s.Name, m.Words))
		}
	}
	f.How = "Samples were taken at " + p.rates() + ". Bars in grey are the kernel’s work, bars in white the programs’. A sample’s class is the first of a list of classes of which a function is in its stack (docs/studies.md); how " +
		"exactly a share is known from round to round stands in the table of the other metrics."
	f.Alt = "Bars, in percent. " + strings.Join(said, "; ") + "."
	c := l.draw()
	for i, m := range l.marks {
		fill := paper
		if kernels[i] {
			fill = grid
		}
		box := rect(c.in(0), c.middle[i]-6, c.in(m.Value), c.middle[i]+6)
		c.area(fill, box...)
		c.lines(ink, 0.8, nil, append(box, box[0])...)
	}
	c.rule(ink, 1, c.in(0))
	f.Picture = c.Picture
	return f
}
