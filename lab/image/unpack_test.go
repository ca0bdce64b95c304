package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/ruler"

	"golang.org/x/sys/unix"
)

func needTool(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := findTool(name)
	require.That(t, err == nil, name+" (Debian package "+pkg+")")
	return path
}

// item is one entry of an archive.
type item struct {
	tar.Header
	body string
}

func dir(name string, mode int64) item {
	return item{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: testTime}}
}
func file(name, body string) item {
	return item{Header: tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: testTime}, body: body}
}
func link(name, target string) item {
	return item{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: testTime}}
}
func hard(name, target string) item {
	return item{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644, ModTime: testTime}}
}
func special(kind byte, name string) item {
	return item{Header: tar.Header{Typeflag: kind, Name: name, Mode: 0o666, Devmajor: 8, ModTime: testTime}}
}
func owned(i item, uid, gid int, mode int64) item {
	i.Uid, i.Gid, i.Mode = uid, gid, mode
	return i
}

var testTime = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

func archiveOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, i := range items {
		i.Size = int64(len(i.body))
		if err := tw.WriteHeader(&i.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, i.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpackAll(ctx context.Context, dir string, lim limits, whiteouts bool, layers ...[]byte) (*unpacker, error) {
	u, err := newUnpacker(ctx, dir, lim)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		if err := u.layer(bytes.NewReader(l), whiteouts); err != nil {
			return u, errors.Join(err, u.close())
		}
	}
	return u, errors.Join(u.finish(), u.close())
}

// listing describes a folder: a line for each name, without following anything.
func listing(t testing.TB, root string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		line := rel
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			line += " -> " + target
		case fi.IsDir():
			line += "/"
		case strings.HasSuffix(rel, ".ext4"): // 1 GiB of nearly nothing
			line += fmt.Sprintf(" %d", fi.Size())
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += "=" + string(b)
		default:
			line += " " + fi.Mode().Type().String()
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func TestUnpackLayers(t *testing.T) {
	require.Root(t)
	tests := []struct {
		name   string
		layers [][]item
		want   []string // lines of listing, sorted
	}{
		{"plain", [][]item{{dir("a/", 0o755), file("a/f", "1"), file("./b", "2"), file("/c", "3")}}, []string{"a/", "a/f=1", "b=2", "c=3"}},
		{"folders made on the way", [][]item{{file("a/b/c", "1")}}, []string{"a/", "a/b/", "a/b/c=1"}},
		{"duplicates, the last stands", [][]item{{file("f", "1"), file("f", "22"), file("f", "3")}}, []string{"f=3"}},
		{"file replaced by folder", [][]item{{file("f", "1")}, {dir("f", 0o755), file("f/g", "2")}}, []string{"f/", "f/g=2"}},
		{"folder replaced by file", [][]item{{file("d/g/h", "1")}, {file("d", "2")}}, []string{"d=2"}},
		{"folder replaced by link", [][]item{{file("d/g/h", "1"), file("e/x", "0")}, {link("d", "e")}}, []string{"d -> e", "e/", "e/x=0"}},
		{"folder replaced by link to anywhere", [][]item{{file("d/g/h", "1")}, {link("d", "/nowhere")}}, []string{"d -> /nowhere"}},
		{"link replaced by folder", [][]item{{link("d", "/etc"), dir("d", 0o755), file("d/x", "1")}}, []string{"d/", "d/x=1"}},
		{"link replaced by file, its target stays", [][]item{{file("t", "old"), link("l", "t")}, {file("l", "new")}}, []string{"l=new", "t=old"}},
		{"through a relative link", [][]item{{dir("usr/lib", 0o755), link("lib", "usr/lib")}, {file("lib/x", "1")}}, []string{"lib -> usr/lib", "usr/", "usr/lib/", "usr/lib/x=1"}},
		{"through an absolute link, inside", [][]item{{dir("run", 0o755), link("var/run", "/run")}, {file("var/run/x", "1")}}, []string{"run/", "run/x=1", "var/", "var/run -> /run"}},
		{"through a chain of links", [][]item{{dir("d/e", 0o755), link("a", "b"), link("b", "/d/../d/e")}, {file("a/x", "1")}}, []string{"a -> b", "b -> /d/../d/e", "d/", "d/e/", "d/e/x=1"}},
		{"hard link", [][]item{{file("a", "1"), hard("b", "a"), hard("d/c", "/a")}}, []string{"a=1", "b=1", "d/", "d/c=1"}},
		{"hard link to a lower layer", [][]item{{file("a", "1")}, {hard("b", "./a")}}, []string{"a=1", "b=1"}},
		{"hard link to itself", [][]item{{file("a", "1"), hard("a", "a")}}, []string{"a=1"}},
		{"hard link to a link is the link", [][]item{{link("l", "/etc/passwd"), hard("h", "l")}}, []string{"h -> /etc/passwd", "l -> /etc/passwd"}},
		{"changing a linked file leaves the other name", [][]item{{file("a", "1"), hard("b", "a")}, {file("b", "2")}}, []string{"a=1", "b=2"}},
		{"devices and pipes left out", [][]item{{special(tar.TypeChar, "null"), special(tar.TypeBlock, "sda"), special(tar.TypeFifo, "p"), file("f", "1")}}, []string{"f=1"}},
		{"whiteout", [][]item{{file("a/x", "1"), file("a/y", "2")}, {file("a/.wh.x", "")}}, []string{"a/", "a/y=2"}},
		{"whiteout of a folder", [][]item{{file("a/x", "1"), file("b", "2")}, {file(".wh.a", "")}}, []string{"b=2"}},
		{"whiteout of what the same layer brings, before", [][]item{{file("a/x", "1")}, {file(".wh.a", ""), file("a/y", "2")}}, []string{"a/", "a/y=2"}},
		{"whiteout of what the same layer brings, after", [][]item{{file("a/x", "1")}, {file("a/y", "2"), file(".wh.a", "")}}, []string{"a/", "a/y=2"}},
		{"opaque, before", [][]item{{file("a/x/z", "1")}, {file("a/.wh..wh..opq", ""), file("a/y", "2")}}, []string{"a/", "a/y=2"}},
		{"opaque, after", [][]item{{file("a/x/z", "1"), file("a/k/l", "0")}, {file("a/k/m", "3"), file("a/y", "2"), file("a/.wh..wh..opq", "")}}, []string{"a/", "a/k/", "a/k/m=3", "a/y=2"}},
		{"whiteout of a link leaves its target", [][]item{{file("t/x", "1"), link("l", "t")}, {file(".wh.l", "")}}, []string{"t/", "t/x=1"}},
		{"whiteout of nothing", [][]item{{file("a", "1")}, {file(".wh.b", "")}}, []string{"a=1"}},
		{"aufs's own files", [][]item{{file(".wh..wh.plnk", "x"), file("a", "1")}}, []string{"a=1"}},
		{"a link at the cached folder is replaced", [][]item{{link("a/l", "."), file("a/l/x", "1"), file("a/l/l", "2"), dir("a/m", 0o755), file("a/x2", "3")}}, []string{"a/", "a/l=2", "a/m/", "a/x2=3", "a/x=1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := t.TempDir()
			var layers [][]byte
			for _, l := range tt.layers {
				layers = append(layers, archiveOf(t, l...))
			}
			if _, err := unpackAll(t.Context(), d, defaultLimits, true, layers...); err != nil {
				t.Fatal(err)
			}
			if got, want := listing(t, d), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("unpacked:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// Every trick must be answered by an error, and nothing outside of the folder may change.
func TestUnpackHostile(t *testing.T) {
	require.Root(t)
	small := defaultLimits
	small.entries, small.total, small.file, small.headers, small.names, small.trailer = 100, 4<<20, 1<<20, 1<<20, 50_000, 1<<16
	many := make([]item, 101)
	for i := range many {
		many[i] = file(fmt.Sprint("f", i), "")
	}
	loop := []item{link("a", "b"), link("b", "a"), file("a/x", "1")}
	// Each link is followed twice as often as the one before: 2^30 steps, were they not counted.
	var bomb []item
	bomb = append(bomb, dir("l0", 0o755))
	for i := 1; i < 31; i++ {
		bomb = append(bomb, link(fmt.Sprint("l", i), fmt.Sprintf("l%d/../l%d", i-1, i-1)))
	}
	bomb = append(bomb, file("l30/x", "1"))
	big := strings.Repeat("x", 1<<20+1)
	tests := []struct {
		name  string
		items []item
	}{
		{"dot dot", []item{file("../outside/evil", "1")}},
		{"dot dot inside", []item{dir("a", 0o755), file("a/../../outside/evil", "1")}},
		{"absolute and dot dot", []item{file("/../outside/evil", "1")}},
		{"folder dot dot", []item{dir("..", 0o777)}},
		{"hard link outside", []item{hard("h", "../outside/victim")}},
		{"hard link through a link that climbs", []item{link("l", "../outside"), hard("h", "l/victim")}},
		{"hard link to an absolute path that is not in the archive", []item{hard("h", "/etc/passwd")}},
		{"hard link to a folder", []item{dir("d", 0o755), hard("h", "d")}},
		{"hard link to the root", []item{hard("h", "/")}},
		{"hard link to nothing", []item{hard("h", "")}},
		{"links in a loop", loop},
		{"links that double", bomb},
		{"link without target", []item{{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Format: tar.FormatPAX}}}},
		{"root as a file", []item{file("/.", "1")}},
		{"root as a link", []item{link(".", "/etc")}},
		{"below a file", []item{file("f", "1"), file("f/x", "2")}},
		{"whiteout of dot dot", []item{file("a/.wh...", "")}},
		{"whiteout of dot", []item{file("a/.wh..", "")}},
		{"whiteout of nothing", []item{file("a/.wh.", "")}},
		{"too many entries", many},
		{"too large a file", []item{file("f", big)}},
		{"too much together", []item{file("a", big[1:]), file("b", big[1:]), file("c", big[1:]), file("d", big[1:]), file("e", big[1:])}},
		{"long name", []item{file("a/"+strings.Repeat("n", 256), "")}},
		{"long path", []item{file(strings.Repeat("nnnnnnnnnnnnnnn/", 200)+"x", "")}},
		{"deep path", []item{file(strings.Repeat("n/", 300)+"x", "")}},
		{"long target", []item{link("l", strings.Repeat("t/", 3000))}},
		{"negative owner", []item{owned(file("f", ""), -2, 0, 0o644)}},
		{"owner that means nobody", []item{owned(file("f", ""), 0, 1<<32-1, 0o644)}},
		{"names that fill the memory", func() (out []item) {
			for i := range 30 {
				out = append(out, file(strings.Repeat(strings.Repeat("n", 200)+"/", 10)+fmt.Sprint(i), ""))
			}
			return out
		}()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			outside, root := filepath.Join(top, "outside"), filepath.Join(top, "root")
			for _, d := range []string{outside, root} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(outside, "victim"), []byte("whole"), 0o644); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err := unpackAll(t.Context(), root, small, true, archiveOf(t, tt.items...))
			if err == nil {
				t.Errorf("accepted:\n%s", listing(t, root))
			} else if !errors.Is(err, ErrHostile) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("refused, but as something else: %v", err)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
			if got := listing(t, outside); got != "victim=whole" {
				t.Errorf("outside of the root there is now %s", got)
			}
			if names, err := filepath.Glob(filepath.Join(top, "*")); err != nil || len(names) != 2 {
				t.Errorf("next to the root there is now %v, %v", names, err)
			}
		})
	}
}

// A link that climbs above the root ends at the root, as it does for every kernel: what goes through it stays inside.
func TestUnpackLinkAboveTheRootStaysInside(t *testing.T) {
	require.Root(t)
	for _, tt := range []struct {
		name  string
		items []item
		want  string
	}{
		{"at the root", []item{link("l", "../outside"), file("l/evil", "1")}, "l -> ../outside\noutside/\noutside/evil=1"},
		{"further down", []item{dir("a", 0o755), link("a/l", "../../../outside"), file("a/l/evil", "1")}, "a/\na/l -> ../../../outside\noutside/\noutside/evil=1"},
		{"in a chain", []item{link("a", "b"), link("b", ".."), file("a/outside/evil", "1")}, "a -> b\nb -> ..\noutside/\noutside/evil=1"},
		{"absolute", []item{link("l", "/../../outside"), file("l/evil", "1")}, "l -> /../../outside\noutside/\noutside/evil=1"},
		{"whiteout", []item{link("l", "../outside"), file("l/.wh.victim", "")}, "l -> ../outside\noutside/"},
		{"opaque", []item{link("l", "../outside"), file("l/.wh..wh..opq", "")}, "l -> ../outside\noutside/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			outside, root := filepath.Join(top, "outside"), filepath.Join(top, "root")
			for _, d := range []string{outside, root} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(outside, "victim"), []byte("whole"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := unpackAll(t.Context(), root, defaultLimits, true, archiveOf(t, tt.items...)); err != nil {
				t.Fatal(err)
			}
			if got := listing(t, root); got != tt.want {
				t.Errorf("unpacked:\n%s\nwant:\n%s", got, tt.want)
			}
			if got := listing(t, outside); got != "victim=whole" {
				t.Errorf("outside of the root there is now %s", got)
			}
		})
	}
}

// Absolute links mean places in the guest, never on the host.
func TestUnpackAbsoluteLinkStaysInside(t *testing.T) {
	require.Root(t)
	top := t.TempDir()
	outside, root := filepath.Join(top, "outside"), filepath.Join(top, "root")
	for _, d := range []string{outside, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := unpackAll(t.Context(), root, defaultLimits, true, archiveOf(t, link("l", outside), file("l/evil", "1"), link("f", outside+"/new"), file("f", "2")))
	if err != nil {
		t.Fatal(err)
	}
	if got := listing(t, outside); got != "" {
		t.Errorf("outside: %s", got)
	}
	if b, err := os.ReadFile(filepath.Join(root, outside, "evil")); string(b) != "1" {
		t.Errorf("inside: %q, %v", b, err)
	}
}

func TestUnpackBrokenStreams(t *testing.T) {
	require.Root(t)
	whole := archiveOf(t, file("f", strings.Repeat("x", 5000)))
	negative := bytes.Clone(whole)
	copy(negative[124:136], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00") // size in base 256: -256
	fixChecksum(negative)
	// A sparse file of PAX 1.0 form that says it is 2^62 bytes long.
	var sparse bytes.Buffer
	tw := tar.NewWriter(&sparse)
	sparseMap := "0\n"
	records := map[string]string{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "f", "GNU.sparse.realsize": "4611686018427387904"}
	_ = records
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: "GNUSparseFile.0/f", Size: 512, Mode: 0o644, Format: tar.FormatPAX}
	if err := tw.WriteHeader(hdr); err != nil {
		t.Fatal(err)
	}
	io.WriteString(tw, sparseMap+strings.Repeat("\x00", 512-len(sparseMap)))
	tw.Close()
	pax := paxed(t, sparse.Bytes(), records)

	lim := defaultLimits
	lim.headers, lim.trailer = 1<<20, 1<<16
	zeros := io.LimitReader(endless{}, 1<<40)
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	if _, err := io.CopyN(z, endless{}, 16<<20); err != nil {
		t.Fatal(err)
	}
	z.Close()
	unz, err := gzip.NewReader(&gz)
	if err != nil {
		t.Fatal(err)
	}
	longHeaders := io.Reader(&repeat{b: paxHeaderOnly(t)})
	tests := []struct {
		name string
		r    io.Reader
	}{
		{"cut off in a file", bytes.NewReader(whole[:2000])},
		{"cut off in a header", bytes.NewReader(whole[:100])},
		{"no tar", strings.NewReader(strings.Repeat("no tar at all ", 1000))},
		{"negative size", bytes.NewReader(negative)},
		{"sparse file of 2^62 bytes", bytes.NewReader(pax)},
		{"endless zeros", zeros},
		{"endless zeros after the end", io.MultiReader(bytes.NewReader(whole), endless{})},
		{"gzip bomb", unz},
		{"endless extended headers", longHeaders},
		{"skipped entry of endless content", io.MultiReader(bytes.NewReader(hugeDevice(t)), endless{})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := newUnpacker(t.Context(), t.TempDir(), lim)
			if err != nil {
				t.Fatal(err)
			}
			defer u.close()
			if err := u.layer(tt.r, true); err == nil {
				t.Error("accepted")
			} else {
				t.Log(err)
			}
			if u.raw > 8<<20 {
				t.Errorf("read %d bytes", u.raw)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// repeat gives the same bytes for ever.
type repeat struct {
	b []byte
	i int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.i:])
	r.i = (r.i + n) % len(r.b)
	return n, nil
}

func fixChecksum(block []byte) {
	copy(block[148:156], "        ")
	sum := 0
	for _, c := range block[:512] {
		sum += int(c)
	}
	copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// paxHeaderOnly is an extended header with nothing after it.
func paxHeaderOnly(t *testing.T) []byte {
	rec := "19 comment=abcdefg\n"
	block := make([]byte, 1024)
	copy(block, "x")
	copy(block[100:], "0000644\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", len(rec)))
	copy(block[136:], "00000000000\x00")
	block[156] = 'x'
	copy(block[257:], "ustar\x0000")
	fixChecksum(block)
	copy(block[512:], rec)
	return block
}

// paxed puts an extended header with these records before an archive.
func paxed(t testing.TB, archive []byte, records map[string]string) []byte {
	var recs string
	for k, v := range records {
		body := " " + k + "=" + v + "\n"
		n := len(body) + 2
		if len(fmt.Sprint(n)) != 2 {
			t.Fatalf("record of %d bytes", n)
		}
		recs += fmt.Sprint(n) + body
	}
	block := make([]byte, 1024)
	copy(block, "x")
	copy(block[100:], "0000644\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", len(recs)))
	copy(block[136:], "00000000000\x00")
	block[156] = 'x'
	copy(block[257:], "ustar\x0000")
	fixChecksum(block)
	copy(block[512:], recs)
	return append(block, archive...)
}

// hugeDevice is the header of a device node that announces 2^40 bytes of content.
func hugeDevice(t *testing.T) []byte {
	block := make([]byte, 512)
	copy(block, "blob")
	copy(block[100:], "0000644\x00")
	copy(block[124:], "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00") // 2^40, base 256
	copy(block[136:], "00000000000\x00")
	block[156] = 'Z' // an unknown kind
	copy(block[257:], "ustar  \x00")
	fixChecksum(block)
	return block
}

func TestUnpackAttributes(t *testing.T) {
	require.Root(t)
	capData := string([]byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // cap_net_raw+ep
	withCap := owned(file("ping", "x"), 0, 0, 0o755)
	withCap.PAXRecords = map[string]string{xattrPrefix + capability: capData, xattrPrefix + "user.note": "n", xattrPrefix + "security.selinux": "s"}
	precise := file("precise", "")
	precise.ModTime = time.Date(2020, 2, 3, 4, 5, 6, 123456789, time.UTC)
	precise.Format = tar.FormatPAX
	future := file("future", "")
	future.ModTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	future.Format = tar.FormatPAX
	d := t.TempDir()
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	u, err := unpackAll(t.Context(), d, defaultLimits, false, archiveOf(t,
		owned(dir("d", 0), 5, 6, 0o2750), owned(file("d/su", "x"), 1000, 2000, 0o4755), withCap, precise, future,
		owned(dir("sticky", 0), 0, 0, 0o1777), owned(link("l", "nowhere"), 7, 8, 0o777), file("made/on/the/way", ""), file("d/made/f", ""),
		owned(file("big-id", ""), 1<<31+5, 1<<31+6, 0o600), special(tar.TypeChar, "dev/null"), special(tar.TypeChar, "n1"), special(tar.TypeFifo, "p")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		name     string
		uid, gid uint32
		mode     fs.FileMode
		time     time.Time
	}{
		{"d", 5, 6, fs.ModeDir | fs.ModeSetgid | 0o750, testTime},
		{"d/su", 1000, 2000, fs.ModeSetuid | 0o755, testTime},
		{"ping", 0, 0, 0o755, testTime},
		{"precise", 0, 0, 0o644, precise.ModTime},
		{"future", 0, 0, 0o644, time.Unix(0, 0)},
		{"sticky", 0, 0, fs.ModeDir | fs.ModeSticky | 0o777, testTime},
		{"l", 7, 8, fs.ModeSymlink | 0o777, testTime},
		{".", 0, 0, fs.ModeDir | 0o755, time.Unix(0, 0)},
		{"d/made", 0, 0, fs.ModeDir | 0o755, time.Unix(0, 0)},
		{"made", 0, 0, fs.ModeDir | 0o755, time.Unix(0, 0)},
		{"made/on/the", 0, 0, fs.ModeDir | 0o755, time.Unix(0, 0)},
		{"big-id", 1<<31 + 5, 1<<31 + 6, 0o600, testTime},
	} {
		fi, err := os.Lstat(filepath.Join(d, w.name))
		if err != nil {
			t.Error(err)
			continue
		}
		st := fi.Sys().(*syscall.Stat_t)
		if st.Uid != w.uid || st.Gid != w.gid || fi.Mode() != w.mode || !fi.ModTime().Equal(w.time) {
			t.Errorf("%s is %d:%d %v %v, want %d:%d %v %v", w.name, st.Uid, st.Gid, fi.Mode(), fi.ModTime(), w.uid, w.gid, w.mode, w.time)
		}
	}
	got, err := fileCapability(filepath.Join(d, "ping"))
	if err != nil {
		t.Error(err)
	}
	want := []string{"1 device nodes outside /dev left out", "1 named pipes left out", "2 extended attributes not kept (only file capabilities are)"}
	if got == "" { // a file system, or sandbox, without capabilities
		want[2] = strings.Replace(want[2], "2", "3", 1)
		t.Log("no file capabilities here")
	} else if got != capData {
		t.Errorf("capability %x, want %x", got, capData)
	}
	if w := u.warnings(); fmt.Sprint(w) != fmt.Sprint(want) {
		t.Errorf("warnings %q, want %q", w, want)
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	require.Root(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := unpackAll(ctx, t.TempDir(), defaultLimits, true, archiveOf(t, file("f", "1"))); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

// smallFS mounts a small tmpfs for the test.
func smallFS(t *testing.T, options string) string {
	t.Helper()
	require.Root(t)
	d := t.TempDir()
	if err := unix.Mount("tmpfs", d, "tmpfs", 0, options); err != nil {
		require.That(t, false, "permission to mount a tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d, 0); err != nil {
			t.Errorf("something still uses %s: %v; detached: %v", d, err, unix.Unmount(d, unix.MNT_DETACH))
		}
	})
	return d
}

func TestUnpackNoSpace(t *testing.T) {
	d := smallFS(t, "size=8m")
	body := archiveOf(t, file("a", strings.Repeat("a", 3<<20)), file("b", strings.Repeat("b", 3<<20)), file("c", strings.Repeat("c", 3<<20)))
	lim := defaultLimits
	lim.reserve = 0
	_, err := unpackAll(t.Context(), d, lim, false, body)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "free some") {
		t.Errorf("full: %v", err)
	}
	_, err = unpackAll(t.Context(), d, defaultLimits, false, body)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "Tare leaves 1024 MiB") {
		t.Errorf("reserve: %v", err)
	}
}

// Deep folders take time in proportion to their number and their depth, and no more. (Each was once looked up from the root at each of its parts:
// these took minutes.)
func TestUnpackDeep(t *testing.T) {
	require.Root(t)
	var deep []item
	for i := range 5 {
		deep = append(deep, file(fmt.Sprint(i, strings.Repeat("/d", 250), "/f"), ""))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	u, err := unpackAll(ctx, t.TempDir(), defaultLimits, true, archiveOf(t, deep...))
	if err != nil {
		t.Fatal(err)
	}
	if want := 5 * 252; u.entries != want {
		t.Errorf("%d entries, want %d", u.entries, want)
	}
	if ctx.Err() != nil {
		t.Error(context.Cause(ctx))
	}
}

// An image of many empty files does not take the file system's last inodes.
func TestUnpackLeavesInodes(t *testing.T) {
	const inodes = 4000
	d := smallFS(t, fmt.Sprintf("size=64m,nr_inodes=%d", inodes))
	many := make([]item, inodes)
	for i := range many {
		many[i] = file(fmt.Sprintf("d%d/f%d", i/10, i), "")
	}
	lim := defaultLimits
	lim.reserve = 0
	_, err := unpackAll(t.Context(), d, lim, false, archiveOf(t, many...))
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "inodes") || strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%v", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(d, &st); err != nil {
		t.Fatal(err)
	}
	if least := uint64(inodes/reserveShare - spaceEntries); st.Ffree < least {
		t.Errorf("%d inodes are left of %d, want at least %d", st.Ffree, st.Files, least)
	}
}

// sparseOf are archives with a file of 1 MiB that has 8 bytes of content, as GNU tar writes them: in PAX records, and in its own old header.
func sparseOf(t testing.TB) (all [][]byte) {
	content := "1\n4096\n8\n"
	content += strings.Repeat("\x00", 512-len(content)) + "headhead"
	all = append(all, paxed(t, archiveOf(t, file("GNUSparseFile.0/s", content)), map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s", "GNU.sparse.realsize": "1048576",
	}))
	block := make([]byte, 1024)
	copy(block, "old")
	copy(block[100:], "0000644\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", 8))
	copy(block[136:], "00000000000\x00")
	block[156] = tar.TypeGNUSparse
	copy(block[257:], "ustar  \x00")
	copy(block[386:], fmt.Sprintf("%011o\x00%011o\x00", 4096, 8))
	copy(block[483:], fmt.Sprintf("%011o\x00", 1<<20))
	fixChecksum(block)
	copy(block[512:], "headhead")
	return append(all, append(block, make([]byte, 1024)...))
}

func TestUnpackSparse(t *testing.T) {
	require.Root(t)
	for i, name := range []string{"s", "old"} {
		d := t.TempDir()
		if _, err := unpackAll(t.Context(), d, defaultLimits, false, sparseOf(t)[i]); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := os.ReadFile(filepath.Join(d, name))
		if want := strings.Repeat("\x00", 4096) + "headhead" + strings.Repeat("\x00", 1<<20-4104); err != nil || string(b) != want {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		small := defaultLimits
		small.file = 1<<20 - 1
		if _, err := unpackAll(t.Context(), t.TempDir(), small, false, sparseOf(t)[i]); !errors.Is(err, ErrHostile) {
			t.Errorf("%s, larger than may be: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	require.Root(f)
	for _, items := range [][]item{
		{file("f", "1"), dir("d", 0o755), link("l", "../outside"), file("l/x", "2"), hard("h", "f")},
		{link("a", "/"), file("a/b", "1"), file(".wh.a", ""), file("d/.wh..wh..opq", "")},
		{dir("proc", 0), link("tmp", "/etc"), link(".tare", "/"), special(tar.TypeFifo, "p"), special(tar.TypeChar, "c")},
		{file("etc/passwd", "u:x:1:2::/:/bin/sh\n"), link("etc/group", "passwd")},
	} {
		f.Add(archiveOf(f, items...), []byte{})
		f.Add(archiveOf(f, items[0]), archiveOf(f, items...))
	}
	for _, sparse := range sparseOf(f) {
		f.Add(sparse, []byte{})
	}
	lim := defaultLimits
	lim.total, lim.headers, lim.entries, lim.reserve = 1<<20, 1<<20, 1000, 0
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		top := t.TempDir()
		root, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
		for _, d := range []string{root, outside} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(outside, "victim"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		before := stamp(t, top) + stamp(t, outside) + stamp(t, filepath.Join(outside, "victim"))
		u, err := newUnpacker(t.Context(), root, lim)
		if err != nil {
			t.Fatal(err)
		}
		defer u.close()
		if u.layer(bytes.NewReader(lower), true) == nil && u.layer(bytes.NewReader(upper), true) == nil {
			rec := &record{}
			if err := u.complete(rec); err == nil {
				for _, d := range []string{"proc", "sys", "dev", "tmp", ".tare", ".tare/work", ".tare/scratch", ".tare/run"} {
					if fi, err := os.Lstat(filepath.Join(root, d)); err != nil || !fi.IsDir() {
						t.Errorf("/%s of an accepted image: %v, %v", d, fi, err)
					}
				}
				u.user("u:g")
				if err := u.workingDir("/a/../../b"); err == nil {
					if _, err := u.root.Stat("b"); err != nil {
						t.Errorf("the working directory: %v", err)
					}
				}
			}
		}
		if after := stamp(t, top) + stamp(t, outside) + stamp(t, filepath.Join(outside, "victim")); after != before {
			t.Errorf("outside of the root:\n%s\nwas\n%s", after, before)
		}
	})
}

// stamp is what changes when something is done to a name or in a folder.
func stamp(t *testing.T, path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %o %d:%d links %d size %d mtime %d ctime %d\n", path, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

func FuzzUser(f *testing.F) {
	f.Add("u", "u:x:1000:1000::/:/bin/sh\n", "g:x:5:\nh:x:6:a,u\n")
	f.Add("", "root:x:0:0::/root:\n", "wheel:x:10:root\n")
	f.Add("1000:g", "# x\n\n::::::::\nu:x:1000:4\n", "g:x:4294967295:\n")
	f.Add("u:", "u", "")
	f.Fuzz(func(t *testing.T, want, passwd, group string) {
		who, err := resolveUser(want, []byte(passwd), []byte(group))
		if err == nil && (who.uid == 1<<32-1 || who.gid == 1<<32-1 || slices.Contains(who.groups, 1<<32-1) || len(who.groups) > ruler.MaxGroups) {
			t.Errorf("%q gives %+v", want, who)
		}
		if err == nil && (who.home == "" || strings.ContainsRune(who.home, 0)) {
			t.Errorf("%q has the home %q", want, who.home)
		}
		if err != nil && !reflect.DeepEqual(who, identity{}) {
			t.Errorf("%q gives %+v with the error %v", want, who, err)
		}
	})
}

// A user's numbers, supplementary groups and home, as `docker run` gives them.
func TestUser(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/sh\n# comment\nbroken\nnobody:x:65534:65534::/:/bin/false\nbad:x:-1:0::/:\nworse:x:4294967295:0::/:\nu:x:1000:100:A:/h:/bin/sh\n12:x:77:78::/:/bin/sh\nhomeless:x:90:91:::/bin/sh\nzero:x:92:93::/a\x00b:/bin/sh\nhugely:x:94:94::/:\n"
	const group = "root:x:0:\nusers:x:100:u\ng:x:5:\nhuge:x:99999999999:\ndata:x:3000:a,u,b\nmore:x:3000:u\nwheel:x:10:root\nmost:x:4294967295:hugely\n"
	for _, tt := range []struct {
		want string
		who  identity
		err  string
	}{
		{"", identity{0, 0, []uint32{10}, "/root"}, ""}, {"root", identity{0, 0, []uint32{10}, "/root"}, ""}, {"0", identity{0, 0, []uint32{10}, "/root"}, ""},
		{"u", identity{1000, 100, []uint32{100, 3000}, "/h"}, ""}, {"1000", identity{1000, 100, []uint32{100, 3000}, "/h"}, ""},
		{"4242", identity{4242, 0, nil, "/"}, ""}, {"8:9", identity{8, 9, nil, "/"}, ""},
		// Who names a group has that one.
		{"u:g", identity{1000, 5, nil, "/h"}, ""}, {"u:7", identity{1000, 7, nil, "/h"}, ""},
		{"nobody", identity{65534, 65534, nil, "/"}, ""}, {"12", identity{12, 0, nil, "/"}, ""}, {"homeless", identity{90, 91, nil, "/"}, ""},
		{"ghost", identity{}, "no matching entries in passwd"}, {"u:ghosts", identity{}, "no matching entries in group"}, {"bad", identity{}, "must be numbers"},
		{"worse", identity{}, "must be numbers"}, {"u:huge", identity{}, "must be numbers"}, {":g", identity{}, "is not name"}, {"u:", identity{}, "is not name"},
		{"-1", identity{}, "must be"}, {"zero", identity{}, "zero byte"}, {"hugely", identity{}, "must be numbers"},
	} {
		who, err := resolveUser(tt.want, []byte(passwd), []byte(group))
		if tt.err == "" && (err != nil || !reflect.DeepEqual(who, tt.who)) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%q: %+v, %v; want %+v, %q", tt.want, who, err, tt.who, tt.err)
		}
	}
	if who, err := resolveUser("", nil, nil); err != nil || who.home != "/" || who.groups != nil {
		t.Errorf("without files: %+v, %v", who, err)
	}
	if _, err := resolveUser("u", []byte(strings.Repeat("x", 64<<10+1)), nil); err == nil {
		t.Error("a line without end was accepted")
	}
	var many strings.Builder
	for i := range ruler.MaxGroups + 1 {
		fmt.Fprintf(&many, "g%d:x:%d:u\n", i, i)
	}
	if _, err := resolveUser("u", []byte(passwd), []byte(many.String())); err == nil || !strings.Contains(err.Error(), "groups; must be at most") {
		t.Errorf("too many groups: %v", err)
	}
}

// The folders that guests need, where the image has something else there.
func TestPrepare(t *testing.T) {
	require.Root(t)
	const all = ".tare/\n.tare/run/\n.tare/scratch/\n.tare/work/\ndev/\nproc/\nsys/\ntmp/"
	for _, tt := range []struct {
		name     string
		items    []item
		want     string // listing, or
		err      string
		warnings int
	}{
		{"empty", nil, all, "", 0},
		{"there already", []item{dir("proc", 0o555), dir(".tare/scratch", 0o700), dir("tmp", 0o777)}, all, "", 0},
		{"links", []item{link("tmp", "/etc"), link("proc", "../../.."), link("dev", "dev")}, all, "", 3},
		{"files", []item{file("sys", "x")}, all, "", 1},
		{"tare is a link", []item{link(".tare", "/etc")}, "", "/.tare is reserved for Tare", 0},
		{"tare is a file", []item{file(".tare", "")}, "", "/.tare is reserved for Tare", 0},
		{"work is a link", []item{link(".tare/work", "/etc")}, "", "/.tare/work is reserved for Tare", 0},
		{"something in scratch", []item{file(".tare/scratch/x", "")}, "", "/.tare/scratch/x", 0},
		{"something beside", []item{file(".tare/ruler", "")}, "", "/.tare/ruler", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := t.TempDir()
			u, err := newUnpacker(t.Context(), d, defaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			defer u.close()
			if err := u.layer(bytes.NewReader(archiveOf(t, tt.items...)), true); err != nil {
				t.Fatal(err)
			}
			rec := &record{}
			err = u.complete(rec)
			if tt.err != "" {
				if !errors.Is(err, ErrHostile) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := listing(t, d); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			if len(rec.Warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", rec.Warnings, tt.warnings)
			}
			if fi, err := os.Stat(filepath.Join(d, ".tare/scratch")); err != nil || fi.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
				t.Errorf("scratch folder: %v, %v", fi.Mode(), err)
			}
		})
	}
}

func runTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// fileCapability reads the capabilities of a file, "" where it has none.
func fileCapability(path string) (string, error) {
	buf := make([]byte, 64) // the kernel's vfs_ns_cap_data has 24
	n, err := unix.Lgetxattr(path, capability, buf)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("its capabilities: %w", err)
	}
	return string(buf[:n]), nil
}
