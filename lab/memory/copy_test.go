//go:build linux

package memory

import (
	"encoding/binary"
	"slices"
	"testing"
)

// A copy is found in the middle of pages, behind one that ends otherwise, and its whole pages count no more.
func TestFindCopy(t *testing.T) {
	const n, seed = 600, 1 << 40
	c := start(t)
	decoy := c.ask("anon %d %d 1", n, seed)
	c.ask("write %d 1 5 1", decoy+(n-1)*uint64(PageSize))
	content := make([]byte, n*PageSize)
	for i := 0; i < len(content); i += 8 {
		binary.NativeEndian.PutUint64(content[i:], seed+uint64(i)/uint64(PageSize))
	}
	from, to := 4*PageSize-24, n*PageSize-40
	content = content[from:to]
	if of, err := FindCopy(c.pid, content); err != nil || of != (Span{}) {
		t.Errorf("%+v, %v, want none: what is there has another end", of, err)
	}
	copied := c.ask("anon %d %d 1", n, seed)
	want := Span{copied + 4*uint64(PageSize), copied + (n-1)*uint64(PageSize)}
	of, err := FindCopy(c.pid, content)
	if err != nil || of != want {
		t.Fatalf("%+v, %v, want %+v", of, err, want)
	}

	s := mustScan(t, Options{}, c.pid)
	before := s.weigh()[0]
	taken := s.Without(c.pid, of)
	after := s.weigh()[0]
	if size := int64(of.End - of.Start); taken != size || before.RSS-after.RSS != size || before.PSS-after.PSS != size || before.USS-after.USS != size {
		t.Errorf("%d bytes taken; %+v, then %+v, want %d less", taken, before, after, size)
	}
	if got := at(s, c.pid, copied, n); len(got) != n-int(of.End-of.Start)/int(PageSize) {
		t.Errorf("%d pages are left", len(got))
	}
	if taken := s.Without(c.pid, of); taken != 0 {
		t.Errorf("taken twice: %d bytes", taken)
	}
}

// What is not in memory is not read, since reading would make it.
func TestFindCopyMakesNoPages(t *testing.T) {
	c := start(t)
	zero := c.ask("zero %d", 64)
	c.ask("drop %d %d", zero, 64)
	if _, err := FindCopy(c.pid, make([]byte, 4*PageSize)); err != nil {
		t.Fatal(err)
	}
	if got := at(mustScan(t, Options{}, c.pid), c.pid, zero, 64); len(got) != 0 {
		t.Errorf("%d pages are there", len(got))
	}
}

// The first byte of a bzImage's second part follows as many sectors as its header says.
func TestProtectedMode(t *testing.T) {
	image := make([]byte, 8192)
	copy(image[0x202:], "HdrS")
	for sectors, want := range map[byte]int{0: 5 * 512, 4: 5 * 512, 9: 10 * 512} {
		image[0x1f1] = sectors
		if got, err := ProtectedMode(image); err != nil || len(got) != len(image)-want {
			t.Errorf("%d sectors: %d bytes, %v", sectors, len(got), err)
		}
	}
	image[0x1f1] = 200
	for _, bad := range [][]byte{image, image[:0x203], slices.Repeat([]byte{1}, 8192)} {
		if got, err := ProtectedMode(bad); err == nil {
			t.Errorf("%d bytes of what is none", len(got))
		}
	}
}

func FuzzProtectedMode(f *testing.F) {
	image := make([]byte, 8192)
	copy(image[0x202:], "HdrS")
	f.Add(image)
	f.Fuzz(func(t *testing.T, image []byte) {
		if rest, err := ProtectedMode(image); err == nil && (len(rest) == 0 || len(rest) > len(image)-2*512) {
			t.Errorf("%d of %d bytes", len(rest), len(image))
		}
	})
}
