package frames

import (
	"slices"
	"strings"
	"testing"
)

// What the kernel's own documentation says of flags, as they are found on real pages.
func TestAFrameIsWhatItsFlagsSay(t *testing.T) {
	for name, c := range map[string]struct {
		flags uint64
		want  Code
	}{
		"a hole":                            {kpfNoPage, Code(Absent)},
		"a free page":                       {kpfBuddy, Code(Free)},
		"a file's page":                     {kpfLRU | kpfUptodate, Code(File) | Listed},
		"a file's page in use":              {kpfLRU | kpfUptodate | kpfActive | kpfReferenced, Code(File) | Listed | Active | Referenced},
		"a file's page that was just read":  {kpfUptodate, Code(File)},
		"a process's page":                  {kpfLRU | kpfUptodate | kpfAnon | kpfSwapBacked | kpfActive, Code(Anonymous) | Listed | Active},
		"a process's page on no list":       {kpfUptodate | kpfAnon | kpfSwapBacked, Code(Anonymous)},
		"a process's page that was merged":  {kpfLRU | kpfUptodate | kpfAnon | kpfKSM, Code(Anonymous) | Listed},
		"a page of tmpfs":                   {kpfLRU | kpfUptodate | kpfSwapBacked | kpfDirty, Code(Shared) | Listed},
		"a huge page of the pool":           {kpfHuge, Code(Shared)},
		"a small object":                    {kpfSlab, Code(Slab)},
		"a page table":                      {kpfPgtable, Code(Tables)},
		"the kernel's image":                {kpfReserved, Code(Reserved)},
		"a page that the kernel took":       {0, Code(Kernel)},
		"a page that a balloon gave back":   {kpfOffline, Code(Given)},
		"a referenced page that is a table": {kpfPgtable | kpfReferenced, Code(Tables) | Referenced},
	} {
		if got := Append(nil, []uint64{c.flags}, 0); !slices.Equal(got, []Code{c.want}) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if c := Code(File) | Listed; !c.Idle() || (c | Active).Idle() || (c | Referenced).Idle() || Code(File).Idle() {
		t.Error("idle is what can be reclaimed, is not active and not referenced")
	}
}

// Parts of a larger page are what its first part is, also where another call has that.
func TestPartsOfALargerPage(t *testing.T) {
	const head = 1 << 15
	first := Append(nil, []uint64{kpfAnon | kpfLRU | head, kpfTail}, 0)
	then := Append(nil, []uint64{kpfTail | kpfUptodate, kpfBuddy, kpfTail}, first[1])
	anon := Code(Anonymous) | Listed
	if got, want := slices.Concat(first, then), []Code{anon, anon, anon, Code(Free), Code(Free)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCodesComeThrough(t *testing.T) {
	var codes []Code
	for k := range Kinds {
		for range int(k)*100 + 1 {
			codes = append(codes, Code(k))
		}
		codes = append(codes, Code(k)|Listed|Referenced)
	}
	b := Pack(nil, codes)
	got, err := Unpack(nil, b, len(codes))
	if err != nil || !slices.Equal(got, codes) || len(b) > 50 {
		t.Errorf("%d codes in %d bytes, %v; want %d", len(got), len(b), err, len(codes))
	}
	if one := Pack(nil, codes[:1]); len(one) != 2 {
		t.Errorf("one frame in %d bytes", len(one))
	}
}

func TestCodesThatAreNone(t *testing.T) {
	for in, want := range map[string]string{
		"\x0a\x01": "not the code of a frame", "\x80\x01": "not the code of a frame", "\x00": "without a length", "\x00\x00": "without a length",
		"\x00\x80": "without a length", "\x00\x05": "more than the requested 4", "\x01\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "more than the requested 4",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f": "without a length",
	} {
		if got, err := Unpack(nil, []byte(in), 4); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%q: %v, %v; want %q", in, got, err, want)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, f := range map[string]Named{
		"a long name":  {Name: strings.Repeat("x", MostName+1)},
		"no frames":    {Frames: []Range{{First: 1}}},
		"far too many": {Frames: []Range{{1, Most}, {1, Most}}},
		"out of reach": {Frames: []Range{{1 << 50, 1}}},
	} {
		if n, err := f.Check(); err == nil {
			t.Errorf("%s: taken, %d frames", name, n)
		}
	}
	if n, err := (&Named{Name: "/bin/sh", Frames: []Range{{7, 2}, {9, 3}}}).Check(); n != 5 || err != nil {
		t.Errorf("%d frames, %v", n, err)
	}
}

// FuzzUnpack: whatever the bytes, there are no more codes than were asked for, each is one, and packed again they say the same.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{1, 4, 0x32, 1}, 5)
	f.Add([]byte{0x80, 1}, 5)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff}, 5)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		if most < 0 || most > 1<<16 {
			return
		}
		codes, err := Unpack(nil, b, most)
		if err != nil {
			return
		}
		if len(codes) > most {
			t.Fatalf("%d codes, of %d", len(codes), most)
		}
		for _, c := range codes {
			_ = c.Kind().String()
		}
		packed := Pack(nil, codes)
		again, err := Unpack(nil, packed, most)
		if err != nil || !slices.Equal(again, codes) || len(packed) > len(b) {
			t.Fatalf("%d codes from %d bytes, %d from %d: %v", len(codes), len(b), len(again), len(packed), err)
		}
	})
}
