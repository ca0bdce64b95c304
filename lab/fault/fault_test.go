package fault

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// The kernel handler's order, by what the page table and the mapping say.
func TestKindsAreTheHandlersOrder(t *testing.T) {
	const file, anon, all = found | seenBefore, found | seenBefore | anonymous, found | seenBefore | shared
	const there = present | 1<<5
	for _, c := range []struct {
		name string
		seen
		want Kind
	}{
		{"a write to untouched memory", seen{SizeBefore: 1, After: there | writable | dirty, Flags: anon}, Anonymous},
		{"a read of untouched memory", seen{SizeBefore: 1, After: there, Flags: anon}, Anonymous},
		{"2 MiB of untouched memory at once", seen{SizeBefore: 512, After: there | writable | dirty, SizeAfter: 512, Flags: anon}, Anonymous},
		{"a read of a file", seen{SizeBefore: 1, After: there, Flags: file}, Read},
		{"a write to a private file", seen{SizeBefore: 1, After: there | writable | dirty, Flags: file}, CopyOnWrite},
		{"a write to a shared file", seen{SizeBefore: 1, After: there | writable | dirty, Flags: all}, Shared},
		{"a read of a shared file", seen{SizeBefore: 1, After: there, Flags: all}, Read},
		{"a read or a write of shared memory", seen{SizeBefore: 1, After: there | writable | dirty, Flags: all | protectionWrites}, Unknown},
		{"a read of clean shared memory", seen{SizeBefore: 1, After: there | writable, Flags: all | protectionWrites}, Read},
		{"an entry of swap", seen{Before: 3 << 59, SizeBefore: 1, After: there | writable | dirty, Flags: anon}, Swap},
		{"an entry for NUMA balancing", seen{Before: 77<<12 | protNone, SizeBefore: 1, After: there, Flags: anon}, Unknown},
		{"a write after a fork", seen{Before: there, SizeBefore: 1, After: there | writable | dirty, Flags: anon}, WriteProtect},
		{"a write after a read of a private file", seen{Before: there, SizeBefore: 1, After: there | writable | dirty, Flags: file}, WriteProtect},
		{"somebody else handled it", seen{Before: there | writable, SizeBefore: 1, After: there | writable | dirty, Flags: anon}, Unknown},
		{"its page went away at once", seen{SizeBefore: 1, Flags: file}, Unknown},
		{"its beginning was not seen", seen{SizeBefore: 1, After: there, Flags: found}, Unknown},
		{"its mapping was not found", seen{SizeBefore: 1, After: there, Flags: seenBefore}, Unknown},
		{"its page table could not be read", seen{After: there, Flags: anon}, Unknown},
	} {
		if got := c.seen.fault().Kind; got != c.want {
			t.Errorf("%s is taken for %s, want %s", c.name, got, c.want)
		}
	}
}

// Of a page that is part of a larger one the frame is its own, not the first of them.
func TestTheFrameOfAPart(t *testing.T) {
	s := seen{Address: 0x7f0000205000, SizeBefore: 512, After: 0x40000000 | present | writable | dirty, SizeAfter: 512, Guest: 3, Flags: found | seenBefore | anonymous}
	if f := s.fault(); f.Frame != 0x40005 || f.Guest != 2 || !f.Private {
		t.Errorf("%+v, want frame 0x40005 of guest 2, private", f)
	}
}

// What repeats another guest's translation, what repeats its own, and what only has the same frame, or the same page.
func TestRepeatsAreOfOtherGuests(t *testing.T) {
	var tally Tally
	tally.Has(3, 0x9000, 90)
	for _, f := range []Fault{
		{Guest: 0, Address: 0x1000, Frame: 10, Kind: Read},
		{Guest: 0, Address: 0x1000, Frame: 10, Kind: Read},                       // its own again
		{Guest: 1, Address: 0x1000, Frame: 10, Kind: Read},                       // repeats
		{Guest: 2, Address: 0x1000, Frame: 10, Kind: Shared, Major: true},        // repeats
		{Guest: 1, Address: 0x2000, Frame: 10, Kind: Read},                       // the same frame elsewhere
		{Guest: 1, Address: 0x1000, Frame: 11, Kind: Read},                       // another frame
		{Guest: 0, Address: 0x9000, Frame: 90, Kind: Read},                       // a frame that existed before
		{Guest: 0, Address: 0x3000, Frame: 30, Kind: Anonymous, Private: true},   // and ends
		{Guest: 1, Address: 0x3000, Frame: 30, Kind: CopyOnWrite, Private: true}, // has its frame by chance
		{Guest: 1, Address: 0x4000, Kind: Unknown},
	} {
		tally.Add(f)
	}
	if tally.Faults() != 10 || tally.Repeats() != 3 || tally.Repeated[Read] != 2 || tally.Repeated[Shared] != 1 || tally.Major != 1 || tally.Untold != 0 {
		t.Errorf("%+v, want 10 faults: 2 reads and a shared one that repeat, and one that waited", tally)
	}
	if n := tally.Common(); n != 5 { // of pages 1 and 9, which several guests have in the same frame
		t.Errorf("%d faults on common translations, want 5", n)
	}
}

// Whatever bytes come, they are a fault of a guest that is watched, whose frame a page table can name, and which can be counted; or an error.
func FuzzParse(f *testing.F) {
	const all = found | seenBefore | shared
	for _, s := range []seen{
		{Address: 0x7f0000205000, SizeBefore: 512, After: 0x40000000 | present | writable | dirty, SizeAfter: 512, Guest: 3, Flags: found | seenBefore | anonymous},
		{SizeBefore: 1, After: 7<<12 | present, SizeAfter: 1, Guest: MostGuests, Flags: all | major},
		{SizeBefore: 1, SizeAfter: 1, Guest: MostGuests + 1},
		{SizeBefore: 1, SizeAfter: 1},
		{SizeBefore: 1, SizeAfter: 3, Guest: 1},
	} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.NativeEndian, s); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()-1])
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		fault, err := parse(record)
		if err != nil {
			if fault != (Fault{}) {
				t.Errorf("%+v with the error %v", fault, err)
			}
			return
		}
		if fault.Guest < 0 || fault.Guest >= MostGuests || fault.Kind >= Kinds || fault.Kind.String() == "" || fault.Frame > frameBits>>pageShift {
			t.Errorf("%+v, want a guest below %d, a kind, and a frame below 2^40", fault, MostGuests)
		}
		var tally Tally
		tally.Add(fault)
		if tally.Faults() != 1 || tally.Repeats() != 0 {
			t.Errorf("%+v, want one fault, which repeats none", tally)
		}
	})
}

// A record that is not a fault of a watched guest is an error, and does not count for another guest.
func TestWhatIsNoFaultIsAnError(t *testing.T) {
	for _, s := range []seen{{SizeAfter: 1}, {SizeAfter: 1, Guest: MostGuests + 1}, {SizeAfter: 3, Guest: 1}} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.NativeEndian, s); err != nil {
			t.Fatal(err)
		}
		if f, err := parse(b.Bytes()); err == nil {
			t.Errorf("%+v is taken for the fault %+v", s, f)
		}
	}
	if f, err := parse(make([]byte, 8)); err == nil {
		t.Errorf("8 bytes are taken for the fault %+v", f)
	}
}
