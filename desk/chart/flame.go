package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/desk/words"
)

const (
	flameRow   = 11.0
	flameText  = 8.0
	flameDepth = 48  // frames that are drawn of a stack
	flameLeast = 0.8 // points that a frame must be wide
)

// Flame is a frame with all that was called from it.
type Flame struct {
	name   string
	kernel bool
	N      int // samples
	calls  []*Flame
}

// Add adds so many samples of a stack, outermost first, which is the kernel's from a frame on.
func (f *Flame) Add(frames []string, kernel, n int) {
	f.N += n
	for i, name := range frames[:min(len(frames), flameDepth)] {
		inside := i >= kernel
		j := slices.IndexFunc(f.calls, func(c *Flame) bool { return c.name == name && c.kernel == inside })
		if j < 0 {
			j = len(f.calls)
			f.calls = append(f.calls, &Flame{name: name, kernel: inside})
		}
		f = f.calls[j]
		f.N += n
	}
}

// Flames are stacks of flames, one below the other.
type Flames struct {
	headings []string
	roots    []*Flame
}

// Add adds a stack under a heading.
func (f *Flames) Add(heading string, root *Flame) {
	f.headings, f.roots = append(f.headings, heading), append(f.roots, root)
}

// Draw draws them.
func (f *Flames) Draw() *Picture {
	c := &Picture{w: pageWidth}
	y := 2.0
	for i, root := range f.roots {
		deep := root.depth(pageWidth-4, root.N)
		c.text(2, y+11, start, smallSize, ink, f.headings[i])
		y += 16
		foot := y + float64(deep)*flameRow
		c.flame(root.calls, 2, pageWidth-2, foot, root.N)
		y = foot + 10
	}
	c.h = y
	return c
}

// Said are its widest calls.
func (f *Flame) Said() string {
	var all []string
	order(f.calls)
	for _, c := range f.calls[:min(len(f.calls), 4)] {
		all = append(all, fmt.Sprintf("%s %s %%", words.Plain(c.name), words.Digits(100*float64(c.N)/float64(f.N), 2)))
	}
	return strings.Join(all, ", ")
}

// order has them as wide frames first, and those that are as wide by their names.
func order(all []*Flame) {
	slices.SortFunc(all, func(a, b *Flame) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.name, b.name)) })
}

// depth is how many rows it takes, in so much room for so many samples.
func (f *Flame) depth(room float64, of int) (deep int) {
	for _, c := range f.calls {
		if room*float64(c.N)/float64(of) >= flameLeast {
			deep = max(deep, 1+c.depth(room, of))
		}
	}
	return deep
}

// flame draws calls side by side from x0 on, with what they called on top of them.
func (c *Picture) flame(calls []*Flame, x0, x1, foot float64, of int) {
	order(calls)
	scale := (pageWidth - 4) / float64(of)
	for _, f := range calls {
		w := scale * float64(f.N)
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
