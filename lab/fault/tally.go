package fault

// Tally counts faults, and how many repeat a translation that another guest has already made: the same virtual page and the same
// frame.
type Tally struct {
	Of       [Kinds]int64
	Repeated [Kinds]int64
	Major    int64
	Untold   int64 // faults that may repeat one or not: there were more translations than Most
	made     map[translation]maker
}

// maker says which guests have made a translation, a bit for each, and how many faults on it were counted.
type maker struct{ guests, faults uint64 }

// Most is the number of translations that a tally remembers.
const Most = 4 << 20

// MostGuests is the greatest number of guests in a tally.
const MostGuests = 64

type translation struct{ page, frame uint64 }

// Has records a translation that a guest has when counting begins.
func (t *Tally) Has(guest int, address, frame uint64) {
	t.make(guest, translation{address >> pageShift, frame}, 0)
}

// make records a translation that so many faults made. others reports whether another guest had made it; known reports whether that
// can be said.
func (t *Tally) make(guest int, tr translation, faults uint64) (others, known bool) {
	if t.made == nil {
		t.made = map[translation]maker{}
	}
	by, ok := t.made[tr]
	if !ok && len(t.made) >= Most {
		return false, false
	}
	t.made[tr] = maker{by.guests | 1<<guest, by.faults + faults}
	return by.guests&^(1<<guest) != 0, true
}

// Add counts a fault. A private page repeats nothing: its frame may have belonged to another process, but that one has ended.
func (t *Tally) Add(f Fault) {
	t.Of[f.Kind]++
	if f.Major {
		t.Major++
	}
	if f.Frame == 0 || f.Private {
		return
	}
	switch others, known := t.make(f.Guest, translation{f.Address >> pageShift, f.Frame}, 1); {
	case !known:
		t.Untold++
	case others:
		t.Repeated[f.Kind]++
	}
}

// Faults is the number of faults.
func (t *Tally) Faults() (n int64) {
	for _, k := range t.Of {
		n += k
	}
	return n
}

// Repeats is the number of faults that repeated a translation.
func (t *Tally) Repeats() (n int64) {
	for _, k := range t.Repeated {
		n += k
	}
	return n
}

// Common is the number of faults on translations that several guests have made by now, with the first fault on each.
func (t *Tally) Common() (n int64) {
	for _, by := range t.made {
		if by.guests&(by.guests-1) != 0 {
			n += int64(by.faults)
		}
	}
	return n
}
