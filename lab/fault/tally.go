package fault

// Tally counts faults, and how many repeat a translation that another guest has already made: the same virtual page and the same
// frame.
type Tally struct {
	Of       [Kinds]int64
	Repeated [Kinds]int64
	Major    int64
	Untold   int64 // faults that may repeat one or not: there were more translations than Most
	made     map[translation]uint64
}

// Most is the number of translations that a tally remembers.
const Most = 4 << 20

// MostGuests is the greatest number of guests in a tally.
const MostGuests = 64

type translation struct{ page, frame uint64 }

// Has records a translation that a guest has when counting begins.
func (t *Tally) Has(guest int, address, frame uint64) {
	t.make(guest, translation{address >> pageShift, frame})
}

// make records a translation. others reports whether another guest had made it; known reports whether that can be said.
func (t *Tally) make(guest int, tr translation) (others, known bool) {
	if t.made == nil {
		t.made = map[translation]uint64{}
	}
	by, ok := t.made[tr]
	if !ok && len(t.made) >= Most {
		return false, false
	}
	t.made[tr] = by | 1<<guest
	return by&^(1<<guest) != 0, true
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
	switch others, known := t.make(f.Guest, translation{f.Address >> pageShift, f.Frame}); {
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
