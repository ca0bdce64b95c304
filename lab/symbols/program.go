//go:build linux

package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// Program is the functions of a program's file, or a library's.
type Program struct {
	table    Table // by the file's own addresses
	segments []elf.ProgHeader
}

// Limits on what is read from a file, which may be any guest's. A program of 100 MB has tables of some 30 MB with 100,000
// functions.
const (
	mostFile    = 1 << 30
	mostSection = 1 << 27 // one of its tables
	mostName    = 1 << 10 // of a function; the rest is cut off
	mostNames   = 1 << 28 // of all functions
)

// function is a function of a program.
type function struct {
	at   uint64
	name string
}

// Open reads the functions of a file from its symbol table, its dynamic symbols and Go's table for unwinding stacks (.gopclntab since Go 1.18), which
// stripping keeps. The error says that the file is not a 64-bit ELF file, or that it is larger than what Open reads. A file without functions
// is not an error.
func Open(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(io.NewSectionReader(f, 0, mostFile))
}

func read(r io.ReaderAt) (*Program, error) {
	if err := headed(r); err != nil {
		return nil, err
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	p := &Program{}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD {
			p.segments = append(p.segments, s.ProgHeader)
		}
	}
	var all []function
	for _, t := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		if s := f.SectionByType(t); s != nil {
			all = append(all, ofSymbols(f, s)...)
		}
	}
	all = append(all, ofGo(f)...)
	slices.SortStableFunc(all, func(a, b function) int { return cmp.Compare(a.at, b.at) })
	long := 0
	for _, fn := range all[:min(len(all), maxSymbols)] {
		if long += len(fn.name); long > mostNames {
			break
		}
		p.table.at, p.table.names = append(p.table.at, fn.at), append(p.table.names, fn.name)
	}
	return p, nil
}

// headed checks what debug/elf reads without a limit when it opens a file: the list of sections, and their names.
func headed(r io.ReaderAt) error {
	var ident [elf.EI_NIDENT]byte
	if _, err := r.ReadAt(ident[:], 0); err != nil || string(ident[:4]) != elf.ELFMAG {
		return errors.New("not an ELF file")
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return errors.New("not a 64-bit ELF file")
	}
	var h elf.Header64
	if err := at(r, order, 0, &h); err != nil {
		return err
	}
	if h.Shoff == 0 && h.Shnum == 0 {
		return nil
	}
	var names elf.Section64
	if err := at(r, order, h.Shoff+uint64(h.Shstrndx)*uint64(h.Shentsize), &names); err != nil {
		return err
	}
	if h.Shnum == 0 || h.Shstrndx >= h.Shnum || elf.SectionFlag(names.Flags)&elf.SHF_COMPRESSED != 0 || names.Size > mostSection {
		return errors.New("it has too many sections, or their names are too long")
	}
	return nil
}

// at reads v from a place in a file.
func at(r io.ReaderAt, order binary.ByteOrder, off uint64, v any) error {
	return binary.Read(io.NewSectionReader(r, int64(min(off, mostFile)), int64(binary.Size(v))), order, v)
}

// table is the content of a section; nil if it is too large, or compressed.
func table(s *elf.Section) []byte {
	if s.Size > mostSection || s.Flags&elf.SHF_COMPRESSED != 0 || s.Type == elf.SHT_NOBITS {
		return nil
	}
	b, err := s.Data()
	if err != nil {
		return nil
	}
	return b
}

// named is the text at a place in a table of names that each end with a zero.
func named(names []byte, off uint64) string {
	if off >= uint64(len(names)) {
		return ""
	}
	names = names[off:min(off+mostName, uint64(len(names)))]
	if end := bytes.IndexByte(names, 0); end >= 0 {
		names = names[:end]
	}
	return string(names)
}

// ofSymbols are the functions of a symbol table.
func ofSymbols(f *elf.File, s *elf.Section) (all []function) {
	if s.Link >= uint32(len(f.Sections)) {
		return nil
	}
	list, names := table(s), table(f.Sections[s.Link])
	long := 0
	for ; len(list) >= elf.Sym64Size && len(all) < maxSymbols && long < mostNames; list = list[elf.Sym64Size:] {
		var y elf.Sym64
		if _, err := binary.Decode(list, f.ByteOrder, &y); err != nil {
			return all
		}
		if elf.ST_TYPE(y.Info) == elf.STT_FUNC && y.Value != 0 {
			all = append(all, function{y.Value, named(names, uint64(y.Name))})
			long += len(all[len(all)-1].name)
		}
	}
	return all
}

// Name is the function at an offset in the file; "" if it is unknown.
func (p *Program) Name(offset uint64) string {
	for _, s := range p.segments {
		if at := offset - s.Off; offset >= s.Off && at < s.Filesz && len(p.table.at) > 0 && s.Vaddr+at >= p.table.at[0] {
			return p.table.Name(s.Vaddr + at)
		}
	}
	return ""
}

// Magic numbers of .gopclntab (internal/abi/symtab.go of Go), of 1.18 and of 1.20.
const (
	go118 = 0xfffffff0
	go120 = 0xfffffff1
)

// ofGo are the functions of a Go program, from .gopclntab. It begins with the magic, two zeros, the quantum and the size of a
// pointer. Then come, a pointer each: the numbers of functions and files, the beginning of the text, and the offsets in the table
// of the functions' names, of three other tables, and of the functions. A function has 4 bytes for its offset in the text, and 4
// for the offset, from the functions on, of its details: its offset again, and that of its name.
func ofGo(f *elf.File) (all []function) {
	i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return strings.HasSuffix(s.Name, ".gopclntab") })
	text := f.Section(".text")
	if i < 0 || text == nil {
		return nil
	}
	lines := f.Sections[i]
	data, order := table(lines), f.ByteOrder
	const head = 8 + 8*8
	if len(data) < head || data[7] != 8 {
		return nil
	}
	if magic := order.Uint32(data); magic != go118 && magic != go120 {
		return nil
	}
	word := func(i int) uint64 { return order.Uint64(data[8+8*i:]) }
	n, names, funcs := word(0), word(3), word(7)
	if names > uint64(len(data)) || funcs > uint64(len(data)) || n > maxSymbols || n > uint64(len(data))/8 {
		return nil
	}
	start := cmp.Or(textStart(f, lines, word(2)), text.Addr)
	more := data[funcs:]
	long := 0
	for i := range n {
		if uint64(len(more)) < 8*i+8 || long > mostNames {
			break
		}
		at, off := order.Uint32(more[8*i:]), uint64(order.Uint32(more[8*i+4:]))
		if off+8 > uint64(len(more)) {
			continue
		}
		name := named(data[names:], uint64(order.Uint32(more[off+4:])))
		long += len(name)
		all = append(all, function{start + uint64(at), name})
	}
	return all
}

// textStart is the address of runtime.text, which functions' addresses are relative to. It is in the table's head or, for a
// position-independent program, in the relocation that puts it there. If C code comes first, it is not the beginning of .text. 0:
// neither has it.
func textStart(f *elf.File, lines *elf.Section, said uint64) uint64 {
	const at = 8 + 2*8 // after the magic, and the numbers of functions and of files
	rela := f.Section(".rela.dyn")
	if said != 0 || rela == nil {
		return said
	}
	for all := table(rela); len(all) >= 24; all = all[24:] {
		var r elf.Rela64
		if _, err := binary.Decode(all, f.ByteOrder, &r); err != nil {
			return 0
		}
		if r.Off == lines.Addr+at {
			return uint64(r.Addend)
		}
	}
	return 0
}
