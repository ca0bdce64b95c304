//go:build linux

package qemu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/notebook"
	"tare/notebook/durable"
)

// KVMKind is kvmKind for the tests of the package's users.
var KVMKind = kvmKind

func TestConsoleKeepsItsEnd(t *testing.T) {
	c := newConsole()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() { c.drain(r); close(done) }()
	for i := range 10_000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	fmt.Fprint(w, "firmware\x1b[2Jtare: note: this\nunfinished tare: note: that")
	w.Close()
	<-done
	if n := len(c.data); n > consoleKept {
		t.Errorf("%d bytes kept, want at most %d", n, consoleKept)
	}
	if got, ok := c.find("tare: note: "); !ok || got != "this" {
		t.Errorf("found %q, %t; want the last whole line, this", got, ok)
	}
	if _, ok := c.wait(context.Background(), "never said"); ok {
		t.Error("a line was found that is not there")
	}
	tail := c.tail(3)
	if want := "line 9999\nfirmware[2Jtare: note: this\nunfinished tare: note: that"; tail != want {
		t.Errorf("tail %q, want %q", tail, want)
	}
}

func TestConsoleWait(t *testing.T) {
	c := newConsole()
	r, w := io.Pipe()
	defer w.Close()
	go c.drain(r)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, ok := c.wait(ctx, "word"); ok {
		t.Error("a word was found that was never said")
	}
	go fmt.Fprint(w, "the word is\n")
	if got, ok := c.wait(context.Background(), "the word "); !ok || got != "is" {
		t.Errorf("waited for %q, %t; want is", got, ok)
	}
}

// An archive is read back, field by field, by an own reading of the format.
func TestCPIO(t *testing.T) {
	dir := t.TempDir()
	content := filepath.Join(dir, "content")
	if err := os.WriteFile(content, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []file{
		{name: "b/c", mode: unix.S_IFREG | 0o644, data: []byte("12345")},
		{name: "init", mode: unix.S_IFREG | 0o755, path: content},
		{name: "dev/console", mode: unix.S_IFCHR | 0o600, dev: 5<<8 | 1},
	}
	path, err := initramfs(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	again, err := initramfs(dir, files)
	if err != nil || again != path {
		t.Errorf("the same files gave %s, %v; want %s", again, err, path)
	}
	files[0].data = []byte("54321")
	if other, err := initramfs(dir, files); err != nil || other == path {
		t.Errorf("other files gave %s, %v; want another path", other, err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(archive) > 0 {
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(string(archive[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if string(archive[:6]) != "070701" {
			t.Fatalf("magic %q", archive[:6])
		}
		mode, size, major, minor, nameSize := field(1), field(6), field(9), field(10), field(11)
		name := string(archive[110 : 110+nameSize-1])
		at := (110 + nameSize + 3) &^ 3
		got = append(got, fmt.Sprintf("%s %o %d:%d %q", name, mode, major, minor, archive[at:at+size]))
		archive = archive[min(uint64(len(archive)), (at+size+3)&^3):]
	}
	want := []string{
		`b 40755 0:0 ""`, `b/c 100644 0:0 "12345"`, `dev 40755 0:0 ""`, `dev/console 20600 5:1 ""`,
		`init 100755 0:0 "from a file"`, `TRAILER!!! 0 0:0 ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ko makes the smallest file that is a kernel module with dependencies.
func ko(depends string) []byte {
	names := "\x00.modinfo\x00.shstrtab\x00"
	info := "license=GPL\x00depends=" + depends + "\x00name=x\x00"
	const head, section = 64, 64
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	le := binary.LittleEndian
	put := func(v any) { binary.Write(&b, le, v) }
	put(uint16(1))
	put(uint16(62))
	put(uint32(1))
	put([3]uint64{0, 0, uint64(head + len(info) + len(names))})
	put(uint32(0))
	put([6]uint16{head, 0, 0, section, 3, 2})
	b.WriteString(info + names)
	put([8]uint64{})
	for _, s := range []struct {
		name, kind uint32
		at, size   int
	}{{1, 1, head, len(info)}, {10, 3, head + len(info), len(names)}} {
		put([2]uint32{s.name, s.kind})
		put([4]uint64{0, 0, uint64(s.at), uint64(s.size)})
		put([2]uint32{})
		put([2]uint64{1, 0})
	}
	return b.Bytes()
}

func TestModules(t *testing.T) {
	dir := t.TempDir()
	compressed := func(data []byte, how func(io.Writer) (io.WriteCloser, error)) []byte {
		var b bytes.Buffer
		w, err := how(&b)
		if err == nil {
			_, err = w.Write(data)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, data := range map[string][]byte{
		"kernel/top.ko":              ko("middle-one,in_kernel"),
		"kernel/a/middle-one.ko.xz":  compressed(ko("base"), func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }),
		"kernel/base.ko.zst":         compressed(ko(""), func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }),
		"kernel/ring1.ko":            ko("ring2"),
		"kernel/ring2.ko":            ko("ring1"),
		"kernel/orphan.ko":           ko("nowhere"),
		"kernel/broken.ko":           []byte("no module"),
		"modules.builtin":            []byte("kernel/x/in-kernel.ko\n"),
		"kernel/extra/unrelated.txt": []byte("text"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := Kernel{Release: "1.2.3", Modules: dir}
	order, err := k.modules([]string{"top", "in-kernel"}, []string{"base", "absent"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range order {
		names = append(names, m.name)
		if !bytes.HasPrefix(m.data, []byte("\x7fELF")) {
			t.Errorf("module %s is not uncompressed", m.name)
		}
	}
	if want := []string{"base", "middle_one", "top"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
	for wanted, why := range map[string]string{
		"absent": "no module absent", "ring1": "depends on itself", "orphan": "no module nowhere, which orphan needs", "broken": "not a kernel module",
	} {
		if _, err := k.modules([]string{wanted}, nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("module %s: %v, want %q", wanted, err, why)
		}
	}
}

// Waiting for another that fetches the kernel ends with the context, and its half-unpacked folder is not taken for one.
func TestFetchKernelWaits(t *testing.T) {
	dir := t.TempDir()
	unlock, err := durable.Lock(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.MkdirAll(filepath.Join(dir, "tmp-1", "root", "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if k, err := fetchKernel(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another fetches: %+v, %v; want the context's error", k, err)
	}
}

func TestUnpackedKernel(t *testing.T) {
	dir := t.TempDir()
	const name = "linux-image-9.9.9-cloud-amd64_9.9.9-1_amd64"
	if err := os.MkdirAll(filepath.Join(dir, name, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := unpackedKernel(dir); err == nil {
		t.Error("a package without a kernel was accepted")
	}
	if err := os.WriteFile(filepath.Join(dir, name, "boot", "vmlinuz-9.9.9-cloud-amd64"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := unpackedKernel(dir); err == nil {
		t.Error("a kernel without modules was accepted")
	}
	modules := filepath.Join(dir, name, "usr/lib/modules/9.9.9-cloud-amd64")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	k, ok, err := unpackedKernel(dir)
	if err != nil || !ok || k.Release != "9.9.9-cloud-amd64" || k.Modules != modules || k.Source != "Debian package "+name {
		t.Errorf("%+v, %t, %v", k, ok, err)
	}
}

func TestStaticProgram(t *testing.T) {
	if err := checkStatic("/bin/sh"); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamic program: %v, want how to build a static one", err)
	}
	if err := checkStatic("/etc/passwd"); err == nil {
		t.Error("a file that is not a program was accepted")
	}
}

// speak is the other end of a control socket: it says the first thing at once, and each of the others when it is
// asked something.
func speak(t *testing.T, said ...string) net.Conn {
	t.Helper()
	our, their := net.Pipe()
	t.Cleanup(func() { their.Close() })
	go func() {
		asked := bufio.NewScanner(their)
		for i, s := range said {
			if i > 0 && !asked.Scan() {
				return
			}
			if _, err := io.WriteString(their, s); err != nil {
				return
			}
		}
		io.Copy(io.Discard, their)
	}()
	return our
}

const greeting = `{"QMP": {"version": {}, "capabilities": []}}` + "\n"

func TestQMP(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := newQMP(ctx, speak(t, greeting, `{"return": {}, "id": 1}`+"\n",
		`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-panic"}, "timestamp": {}}`+"\n"+
			`{"return": {"ignored": 1}, "id": 77}`+"\n"+`{"return": {"x": 5}, "id": 2}`+"\n",
		`{"error": {"class": "GenericError", "desc": "no such thing"}, "id": 3}`+"\n", `{"return": [], "id": 4}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	var got struct{ X int }
	if err := q.run(ctx, "query", &got); err != nil || got.X != 5 {
		t.Errorf("returned %+v, %v; want 5", got, err)
	}
	if why := q.stopped(); why != "guest-panic" {
		t.Errorf("the machine stopped because of %q, want guest-panic", why)
	}
	if err := q.run(ctx, "query", nil); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("a refused command: %v, want QEMU's reason", err)
	}
	if err := q.run(ctx, "query", &got); err == nil || !strings.Contains(err.Error(), "returned") {
		t.Errorf("an answer of another kind: %v", err)
	}
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if err := q.run(short, "query", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v, want the context's error", err)
	}
}

func TestQMPBad(t *testing.T) {
	for name, said := range map[string]string{
		"garbage":     "hello\n",
		"no greeting": `{"return": {}, "id": 1}` + "\n",
		"endless":     strings.Repeat("x", maxQMPLine+10),
		"other id":    greeting + `{"return": {}, "id": 2}` + "\n",
		"no id":       greeting + `{"return": {}}` + "\n",
		"other types": greeting + `{"return": {}, "id": "1"}` + "\n",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if _, err := newQMP(ctx, speak(t, strings.SplitAfterN(said, "\n", 2)...)); err == nil {
			t.Errorf("%s: no error", name)
		}
		cancel()
	}
}

// Whatever QEMU says, its client ends in time and without a panic.
func FuzzQMP(f *testing.F) {
	f.Add([]byte(greeting + `{"return": {}, "id": 1}` + "\n" + `{"return": [{"cpu-index": 0, "thread-id": 5}], "id": 2}` + "\n"))
	f.Add([]byte(greeting + `{"error": {"class": "A", "desc": "B"}, "id": 1}` + "\n"))
	f.Add([]byte(greeting + `{"event": "SHUTDOWN", "data": null}` + "\n{}\nnull\n[]\n"))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, said []byte) {
		our, their := net.Pipe()
		defer their.Close()
		go func() {
			their.Write(said)
			their.Close()
		}()
		go io.Copy(io.Discard, their)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		q, err := newQMP(ctx, our)
		if err != nil {
			return
		}
		defer q.close()
		var cpus []struct {
			Thread int `json:"thread-id"`
		}
		_ = q.run(ctx, "query-cpus-fast", &cpus) // any answer will do
	})
}

// Whatever a guest writes, its text in messages is printable and bounded.
func FuzzConsole(f *testing.F) {
	f.Add([]byte("tare: note: x\ny"))
	f.Add([]byte("tare: note: \xff\x1b[31m\r\n\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		c := newConsole()
		c.drain(bytes.NewReader(said))
		line, _ := c.find("tare: note: ")
		for _, s := range []string{line, strings.ReplaceAll(c.tail(12), "\n", "")} {
			if len(s) > 12*310 || s != strings.ToValidUTF8(s, "") || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", s)
			}
		}
	})
}

// An overlay is what docs/interop/qcow2.txt says, and that its four clusters are in use and nothing is allocated.
func TestEmptyQcow2(t *testing.T) {
	const cluster = 1 << 16
	for _, c := range []struct {
		size    int64
		entries uint32
	}{{4096, 1}, {512 << 20, 1}, {512<<20 + 4096, 2}, {4 << 40, 8192}} {
		b, err := emptyQcow2(c.size)
		if err != nil || len(b) != 4*cluster {
			t.Fatalf("%d bytes: %d bytes, %v", c.size, len(b), err)
		}
		be := binary.BigEndian
		head := []any{
			be.Uint32(b), be.Uint32(b[4:]), be.Uint64(b[8:]), be.Uint32(b[16:]), be.Uint32(b[20:]), be.Uint64(b[24:]), be.Uint32(b[32:]),
			be.Uint32(b[36:]), be.Uint64(b[40:]), be.Uint64(b[48:]), be.Uint32(b[56:]), be.Uint32(b[96:]), be.Uint32(b[100:]), be.Uint64(b[104:]),
		}
		want := []any{
			uint32(0x514649fb), uint32(3), uint64(0), uint32(0), uint32(16), uint64(c.size), uint32(0), // no backing file, no encryption
			c.entries, uint64(3 * cluster), uint64(cluster), uint32(1), uint32(4), uint32(104), uint64(0), // no extension
		}
		if !slices.Equal(head, want) {
			t.Errorf("%d bytes: header %v, want %v", c.size, head, want)
		}
		if at := be.Uint64(b[cluster:]); at != 2*cluster {
			t.Errorf("the block of refcounts is at %#x, want %#x", at, 2*cluster)
		}
		if counts := b[2*cluster : 2*cluster+10]; !bytes.Equal(counts, []byte{0, 1, 0, 1, 0, 1, 0, 1, 0, 0}) {
			t.Errorf("refcounts %v, want 1 for each of four clusters", counts)
		}
		if len(bytes.Trim(b[3*cluster:], "\x00")) != 0 {
			t.Error("something is allocated")
		}
	}
	if _, err := emptyQcow2(4<<40 + 1); err == nil {
		t.Error("a disk for which the tables have no room: want an error")
	}
}

// No flush of a disk is ignored, and every file behind it is named to QEMU with its format.
func TestDiskArgs(t *testing.T) {
	h := hardware{board: q35, root: "/r,oot", overlay: "/o", work: "/w", machine: notebook.UsualMachine}
	got, err := h.disks()
	if err != nil {
		t.Fatal(err)
	}
	file := func(path string, readonly bool) string {
		return fmt.Sprintf(`"read-only":%[2]t,"cache":{"direct":false,"no-flush":false},"file":{"driver":"file","read-only":%[2]t,"cache":{"direct":false,"no-flush":false},"filename":"%[1]s","aio":"threads"}`, path, readonly)
	}
	want := []string{
		"-object", "iothread,id=io",
		"-blockdev", `{"driver":"qcow2","node-name":"root",` + file("/o", false) + `,"backing":{"driver":"raw",` + file("/r,oot", true) + "}}",
		"-device", "virtio-blk-pci,id=root,drive=root,serial=tare-root,write-cache=on,iothread=io,werror=report",
		"-blockdev", `{"driver":"raw","node-name":"work",` + file("/w", true) + "}",
		"-device", "virtio-blk-pci,id=work,drive=work,serial=tare-work,write-cache=on,iothread=io",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A microVM has virtio devices without a bus, no PCI device, no NUMA node and no I/O thread, and is refused the machines that need them.
func TestMicroVMArgs(t *testing.T) {
	for text, want := range map[string]string{"": "", "huge-pages=2M": "-object memory-backend-memfd,hugetlb=on,hugetlbsize=2097152,prealloc=on,id=memory0,size=1073741824 -machine memory-backend=memory0"} {
		m, err := notebook.ParseMachine(text)
		if err != nil {
			t.Fatal(err)
		}
		h := hardware{board: microvm, accelerator: notebook.KVMEmulated, cpus: 2, memory: 1 << 30, root: "/root", overlay: "/o", work: "/w", machine: microvm.made(m)}
		args, err := h.args()
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(args, " ")
		for _, has := range []string{"-machine microvm,acpi=off ", "-bios qboot.rom ", want, "-device virtio-serial-device ", "-device virtio-net-device,netdev=net ", "-device virtio-blk-device,id=root,drive=root,", "-device virtio-blk-device,id=work,"} {
			if !strings.Contains(all+" ", has) {
				t.Errorf("%q: no %q in %s", text, has, all)
			}
		}
		for _, no := range []string{"pci", "-numa", "iothread", "romfile"} {
			if strings.Contains(all, no) {
				t.Errorf("%q: %q in %s", text, no, all)
			}
		}
	}
	d := New(MicroVM, engine.Env{})
	for text, want := range map[string]string{
		"": "", "cache=none aio=native": "", "no-iothread": "", "devices=balloon": "no PCI bus", "nodes=2 sockets=2": "has only one",
	} {
		m, err := notebook.ParseMachine(text)
		if err != nil {
			t.Fatal(err)
		}
		err = d.fits(m, notebook.Instance{Cores: 2, Memory: 1 << 30})
		if (err == nil) != (want == "") || want != "" && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "use engine qemu")) {
			t.Errorf("%q on a microVM: %v, want %q", text, err, want)
		}
	}
}

// If a disk needs O_DIRECT and the file system lacks it, the error says so in one line.
func TestNoDirectIO(t *testing.T) {
	const none = "/proc/self/comm" // nor does any file there
	for cache, want := range map[string]bool{notebook.CacheWriteback: false, notebook.CacheNone: true, notebook.CacheDirectSync: true} {
		d := notebook.UsualMachine.Disk
		d.Cache = cache
		err := opens(VM, d, none)
		why := fmt.Sprint(err)
		if (err != nil) != want || want && !strings.HasPrefix(why, "vm with qemu cannot give cache="+cache+": the file system of /proc/self opens no file past its page cache (O_DIRECT): invalid argument") || strings.Contains(why, "\n") {
			t.Errorf("cache mode %s on /proc: %v, want it refused: %t", cache, err, want)
		}
	}
}

// The machine's memory is one piece where nothing else is asked for; else one on each node, with the virtual CPUs of its sockets.
func TestMemoryArgs(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil,
		"huge-pages=2M": {
			"-object", "memory-backend-memfd,hugetlb=on,hugetlbsize=2097152,prealloc=on,id=memory0,size=1073741824", "-numa", "node,nodeid=0,memdev=memory0,cpus=0-3"},
		"sockets=2 nodes=2": {
			"-object", "memory-backend-ram,id=memory0,size=536870912", "-numa", "node,nodeid=0,memdev=memory0,cpus=0-1",
			"-object", "memory-backend-ram,id=memory1,size=536870912", "-numa", "node,nodeid=1,memdev=memory1,cpus=2-3"},
	} {
		m, err := notebook.ParseMachine(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (hardware{board: q35, cpus: 4, memory: 1 << 30, machine: m}).memoryArgs(); !slices.Equal(got, want) {
			t.Errorf("%q: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Memory is of huge pages where as much of the process is mapped of them; transparent ones are ordinary pages that the kernel has put
// together.
func TestHugePagesOf(t *testing.T) {
	ordinary := proc.Backing{Mapping: proc.Mapping{Start: 1 << 40, End: 1<<40 + 1<<30}, PageSize: 4 << 10}
	huge := proc.Backing{Mapping: proc.Mapping{Start: 1 << 41, End: 1<<41 + 512<<20}, PageSize: 2 << 20}
	for _, c := range []struct {
		all    []proc.Backing
		memory int64
		want   int64
	}{
		{[]proc.Backing{ordinary}, 1 << 30, 0}, {[]proc.Backing{ordinary, huge}, 512 << 20, 2 << 20},
		{[]proc.Backing{ordinary, huge}, 1 << 30, 0}, {[]proc.Backing{huge, ordinary, huge}, 1 << 30, 2 << 20},
	} {
		if got := hugePagesIn(c.all, c.memory); got != c.want {
			t.Errorf("%d bytes of %+v: %d, want %d", c.memory, c.all, got, c.want)
		}
	}
}

// Only a number of huge pages is written when they are given back, whatever a journal says.
func TestGiveBackRefuses(t *testing.T) {
	for _, e := range []journal.Entry{
		{Target: "/etc/passwd", Detail: map[string]string{detailPages: "1"}},
		{Target: hugePagesFolder + "/hugepages-2048kB/../../ksm/run", Detail: map[string]string{detailPages: "1"}},
		{Target: hugePagesFolder + "/hugepages-2048kB/nr_hugepages", Detail: map[string]string{detailPages: "many"}},
	} {
		if err := giveBack(t.Context(), e); err == nil {
			t.Errorf("%+v: want an error", e)
		}
	}
}

// Flushes is how many flushes of its root's disk the guest has made, as QEMU counts them; for the conformance suite.
func (g *Guest) Flushes(ctx context.Context) (int64, error) {
	var all []struct {
		Node  string `json:"node-name"`
		Stats struct {
			Flushes int64 `json:"flush_operations"`
		} `json:"stats"`
	}
	if err := g.machine.qmp.run(ctx, "query-blockstats", &all); err != nil {
		return 0, err
	}
	for _, b := range all {
		if b.Node == rootNode {
			return b.Stats.Flushes, nil
		}
	}
	return 0, fmt.Errorf("QEMU has no statistics of a disk %q: %+v", rootNode, all)
}

// QEMU's arguments for the network: its own by default, a tap if there is one, otherwise no card.
func TestNetworkArgs(t *testing.T) {
	file := os.Stdin // any: only that there is one counts
	mac := network.MAC(netip.MustParseAddr("198.18.0.3"))
	usual, err := notebook.ParseMachine("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		h    hardware
		want []string
	}{
		{hardware{board: q35}, []string{"user,id=net,restrict=on,ipv6=off", "virtio-net-pci,netdev=net,romfile="}},
		{hardware{board: q35, network: notebook.NetUser, forward: netip.MustParseAddrPort("198.18.0.1:80")}, []string{"user,id=net,restrict=on,ipv6=off,hostfwd=tcp:198.18.0.1:80-:80", "virtio-net-pci,netdev=net,romfile="}},
		{hardware{board: q35, network: notebook.NetNone}, nil},
		{hardware{board: q35, network: notebook.NetBridge, tap: file, mac: mac}, []string{"tap,id=net,fd=6", "virtio-net-pci,netdev=net,romfile=,mac=02:54:c6:12:00:03"}},
		{hardware{board: q35, network: notebook.NetBridge, tap: file, mac: mac, vhost: file}, []string{"tap,id=net,fd=6,vhost=on,vhostfd=7", "virtio-net-pci,netdev=net,romfile=,mac=02:54:c6:12:00:03"}},
	} {
		var got []string
		c.h.cpus, c.h.machine = 1, usual
		args, err := c.h.args()
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range args {
			if a == "-netdev" || strings.HasPrefix(a, "virtio-net-pci,") {
				if a == "-netdev" {
					a = args[i+1]
				}
				got = append(got, a)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("network %q: %q, want %q", c.h.network, got, c.want)
		}
	}
}

// QEMU's arguments for devices that no workload needs. None of them listens on a network.
func TestDeviceArgs(t *testing.T) {
	const virtManager = "-spice unix=on,addr=/g/screen,disable-ticketing=on,image-compression=off,seamless-migration=on " +
		"-chardev spicevmc,id=agent,name=vdagent -device virtserialport,chardev=agent,name=com.redhat.spice.0 " +
		"-device qxl-vga,ram_size=67108864,vram_size=67108864,vgamem_mb=16 -audiodev spice,id=sound -device intel-hda -device hda-duplex,audiodev=sound "
	const controllers = "-device ich9-usb-ehci1,id=usb,addr=1d.7 -device ich9-usb-uhci1,masterbus=usb.0,firstport=0,multifunction=on,addr=1d.0 " +
		"-device ich9-usb-uhci2,masterbus=usb.0,firstport=2,addr=1d.1 -device ich9-usb-uhci3,masterbus=usb.0,firstport=4,addr=1d.2 -device usb-tablet,bus=usb.0 "
	const redirected = "-chardev spicevmc,name=usbredir,id=redirected1 -device usb-redir,bus=usb.0,chardev=redirected1 " +
		"-chardev spicevmc,name=usbredir,id=redirected2 -device usb-redir,bus=usb.0,chardev=redirected2 "
	for list, want := range map[string]string{
		"":                           "",
		"balloon":                    "-device virtio-balloon-pci ",
		"reporting":                  "-device virtio-balloon-pci,id=reporting,free-page-reporting=on ",
		"usb,balloon":                controllers + "-device virtio-balloon-pci ",
		"cirrus,vnc,ich9":            "-vnc unix:/g/screen -device cirrus-vga -audiodev none,id=sound -device ich9-intel-hda -device hda-duplex,audiodev=sound ",
		"qxl,spice,ich6,usb,balloon": virtManager + controllers + redirected + "-device virtio-balloon-pci ",
		"ich6":                       "-audiodev none,id=sound -device intel-hda -device hda-duplex,audiodev=sound ",
	} {
		args := deviceArgs(list, "/g/screen")
		if got := strings.Join(args, " "); got != strings.TrimSpace(want) {
			t.Errorf("%q:\n%s\nwant\n%s", list, got, want)
		}
		h := hardware{board: q35, cpus: 1, machine: notebook.UsualMachine, network: notebook.NetNone, screen: "/g/screen"}
		h.machine.Devices = list
		all, err := h.args()
		if err != nil || !strings.Contains(strings.Join(all, " ")+" ", strings.Join(args, " ")+" ") {
			t.Errorf("%q: the machine's arguments %q, %v; want those of its devices among them", list, all, err)
		}
	}
}

// Huge pages that were taken for a guest are given back at the next start where Tare was killed.
func TestHugePagesAfterAKill(t *testing.T) {
	require.Root(t)
	file := hugePagesFolder + "/hugepages-2048kB/nr_hugepages"
	before, err := number(file)
	require.That(t, err == nil, "a kernel with huge pages of 2 MiB (CONFIG_HUGETLBFS)")
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	free, err := number(hugePagesFolder + "/hugepages-2048kB/free_hugepages")
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(VM, journal.NewChanges(j, undo()), 2<<20, (free+3)*2<<20); err != nil {
		t.Fatal(err)
	}
	if n, err := number(file); err != nil || n != before+3 {
		t.Errorf("%d huge pages, %v; want %d", n, err, before+3)
	}
	if err := j.Close(); err == nil {
		t.Error("a journal with an open entry was closed without a word")
	}
	if _, err := journal.Recover(t.Context(), state, undo()); err != nil {
		t.Fatal(err)
	}
	if n, err := number(file); err != nil || n != before {
		t.Errorf("%d huge pages, %v; want %d again", n, err, before)
	}
}

// KVM's counts of pages are added up, each times its size of page. Other providers, counts and histograms are ignored. A value that is not a count is
// refused.
func TestMapped(t *testing.T) {
	for text, want := range map[string]struct {
		bytes int64
		known bool
		wrong string
	}{
		`[]`: {},
		`[{"provider":"kvm","stats":[{"name":"remote_tlb_flush","value":7},{"name":"halt_wait_hist","value":[1,2]}]}]`: {},
		`[{"provider":"kvm","stats":[{"name":"pages_4k","value":3},{"name":"pages_2m","value":2},{"name":"pages_1g","value":0}]},
		  {"provider":"other","stats":[{"name":"pages_4k","value":100}]}]`: {bytes: 3<<12 + 4<<20, known: true},
		`[{"provider":"kvm","stats":[{"name":"pages_4k","value":-1}]}]`:             {wrong: "must be a number of pages"},
		`[{"provider":"kvm","stats":[{"name":"pages_1g","value":99999999999999}]}]`: {wrong: "must be a number of pages"},
		`[{"provider":"kvm","stats":[{"name":"pages_2m","value":[1]}]}]`:            {wrong: "must be a number of pages"},
	} {
		var said []statistics
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			t.Fatal(err)
		}
		bytes, known, err := mapped(said)
		if bytes != want.bytes || known != want.known || (err == nil) != (want.wrong == "") || err != nil && !strings.Contains(err.Error(), want.wrong) {
			t.Errorf("%s: %d, %v, %v; want %+v", text, bytes, known, err, want)
		}
	}
}
