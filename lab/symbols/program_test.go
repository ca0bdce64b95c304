//go:build linux

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A stripped Go program's functions are known, at the places in its file where they are.
func TestStrippedGo(t *testing.T) {
	dir := t.TempDir()
	source := dir + "/main.go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(tare()) }\n\n//go:noinline\nfunc tare() int { return 7 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"exe"} {
		program := dir + "/" + mode
		cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode="+mode, "-ldflags=-s -w", "-o", program, source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p, err := Open(program)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for i, name := range p.table.names {
			if name != "main.tare" {
				continue
			}
			found = true
			at := p.table.at[i]
			for _, s := range p.segments {
				if at >= s.Vaddr && at < s.Vaddr+s.Filesz {
					if got := p.Name(at - s.Vaddr + s.Off + 1); got != "main.tare" {
						t.Errorf("%s: %q is at the place of main.tare", mode, got)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: main.tare is none of the %d functions", mode, len(p.table.names))
		}
	}
}

// What is installed here, C code before Go's among it.
func TestInstalled(t *testing.T) {
	for _, program := range []string{"dockerd", "containerd", "runc", "podman"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		p, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		n := 0
		for _, name := range p.table.names {
			if strings.HasPrefix(name, "runtime.mallocgc") {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s: runtime.mallocgc is none of its %d functions", program, len(p.table.names))
		}
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := Open("/proc/cmdline"); err == nil {
		t.Error("no error for a file that is not a program")
	}
}

// A program's file may be a guest's: whatever is in it, its functions are read or not, and it is bounded what is kept of them.
func FuzzProgram(f *testing.F) {
	f.Add(madeUp("main.main", 1))
	f.Add(madeUp("main.main", 1<<40))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := read(bytes.NewReader(b))
		if err != nil {
			return
		}
		long := 0
		for _, name := range p.table.names {
			long += len(name)
		}
		if len(p.table.at) != len(p.table.names) || len(p.table.at) > maxSymbols || long > mostNames+mostName {
			t.Errorf("%d functions at %d addresses, with names of %d bytes, of a file of %d", len(p.table.names), len(p.table.at), long, len(b))
		}
		for _, s := range p.segments {
			p.Name(s.Off)
		}
	})
}

// madeUp is the smallest program of Go's that has a function; it says that it has n.
func madeUp(name string, n uint64) []byte {
	o := binary.LittleEndian
	names := "\x00.text\x00.gopclntab\x00.shstrtab\x00"
	lines := o.AppendUint32(nil, go120)
	lines = append(lines, 0, 0, 1, 8)
	const head = 8 + 8*8
	for _, v := range []uint64{n, 0, 0x1000, head, 0, 0, 0, head + 16} {
		lines = o.AppendUint64(lines, v)
	}
	lines = append(lines, name+strings.Repeat("\x00", 16-len(name))...)
	for _, v := range []uint32{0x10, 8, 0x10, 0} { // the function and its details
		lines = o.AppendUint32(lines, v)
	}
	const segmentAt, namesAt = 64, 64 + 56
	linesAt := namesAt + len(names)
	sectionsAt := linesAt + len(lines)
	var b bytes.Buffer
	for _, v := range []any{
		elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1,
			Phoff: segmentAt, Shoff: uint64(sectionsAt), Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: 4, Shstrndx: 3,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: 0x1000, Filesz: 0x100},
		[]byte(names), lines,
		elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Addr: 0x1000},
		elf.Section64{Name: 7, Type: uint32(elf.SHT_PROGBITS), Off: uint64(linesAt), Size: uint64(len(lines))},
		elf.Section64{Name: 18, Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))},
	} {
		if err := binary.Write(&b, o, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// Programs that say that they are larger than they are, or that are packed to be larger than they look, are given up before anything is made of them.
func TestHostilePrograms(t *testing.T) {
	good := madeUp("main.main", 1)
	if p, err := read(bytes.NewReader(good)); err != nil || p.Name(0x12) != "main.main" {
		t.Fatalf("%v, %+v: want main.main", err, p)
	}
	if p, err := read(bytes.NewReader(madeUp("main.main", 1<<40))); err != nil || len(p.table.names) != 0 {
		t.Errorf("%v: it says that it has more functions than bytes", err)
	}
	sections := int(binary.LittleEndian.Uint64(good[40:]))
	for name, change := range map[string]func(names []byte){
		"long": func(names []byte) { binary.LittleEndian.PutUint64(names[32:], 1<<40) },
		"packed": func(names []byte) {
			names[8] |= byte(elf.SHF_COMPRESSED >> 8)
			names[9] |= byte(elf.SHF_COMPRESSED >> 8)
		},
	} {
		b := slices.Clone(good)
		change(b[sections+3*64:])
		if _, err := read(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), "too many sections") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A name without an end is cut off, however many functions have it.
	if n := named(bytes.Repeat([]byte{'x'}, 1<<20), 3); len(n) != mostName {
		t.Errorf("a name of %d bytes", len(n))
	}
}
