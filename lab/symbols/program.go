//go:build linux

package symbols

import (
	"cmp"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Program is the functions of a program's file, or a library's.
type Program struct {
	table    Table // by the file's own addresses
	segments []elf.ProgHeader
}

// Open reads the functions of a file: of its symbol table, of what Go's own runtime unwinds stacks by, which no stripping takes away
// (.gopclntab), and of what it gives to others. The error says that it is no ELF file; one without any functions has none.
func Open(path string) (*Program, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Program{}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD {
			p.segments = append(p.segments, s.ProgHeader)
		}
	}
	type function struct {
		at   uint64
		name string
	}
	var all []function
	for _, read := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		list, err := read()
		if err != nil {
			continue // it has none of these
		}
		for _, s := range list {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
				all = append(all, function{s.Value, s.Name})
			}
		}
	}
	if funcs, err := ofGo(f); err == nil {
		for _, fn := range funcs {
			all = append(all, function{fn.Entry, fn.Name})
		}
	}
	slices.SortStableFunc(all, func(a, b function) int { return cmp.Compare(a.at, b.at) })
	for _, fn := range all[:min(len(all), maxSymbols)] {
		p.table.at, p.table.names = append(p.table.at, fn.at), append(p.table.names, fn.name)
	}
	return p, nil
}

// Name is the function at an offset in the file; "" where none is known.
func (p *Program) Name(offset uint64) string {
	for _, s := range p.segments {
		if at := offset - s.Off; offset >= s.Off && at < s.Filesz && len(p.table.at) > 0 && s.Vaddr+at >= p.table.at[0] {
			return p.table.Name(s.Vaddr + at)
		}
	}
	return ""
}

// ofGo are the functions of a Go program, from .gopclntab.
func ofGo(f *elf.File) (funcs []gosym.Func, err error) {
	i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return strings.HasSuffix(s.Name, ".gopclntab") })
	text := f.Section(".text")
	if i < 0 || text == nil {
		return nil, errors.New("no Go program")
	}
	lines := f.Sections[i]
	data, err := lines.Data()
	if err != nil {
		return nil, err
	}
	start, err := textStart(f, lines, data)
	if err != nil {
		return nil, err
	}
	defer func() { // the package that parses it trusts the file
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", lines.Name, r)
		}
	}()
	t, err := gosym.NewTable(nil, gosym.NewLineTable(data, cmp.Or(start, text.Addr)))
	if err != nil {
		return nil, err
	}
	return t.Funcs, nil
}

// textStart is the address of runtime.text, which functions' addresses are relative to. It is in the table's head, or, of a program that can be
// loaded anywhere, in the relocation that puts it there; where C code comes first it is not the beginning of .text. 0: neither says.
func textStart(f *elf.File, lines *elf.Section, data []byte) (uint64, error) {
	const at = 8 + 2*8 // after the magic, and the numbers of functions and of files
	if len(data) < at+8 {
		return 0, errors.New(".gopclntab is too short")
	}
	if v := f.ByteOrder.Uint64(data[at:]); v != 0 {
		return v, nil
	}
	rela := f.Section(".rela.dyn")
	if rela == nil {
		return 0, nil
	}
	all, err := rela.Data()
	if err != nil {
		return 0, err
	}
	for ; len(all) >= 24; all = all[24:] {
		var r elf.Rela64
		if _, err := binary.Decode(all, f.ByteOrder, &r); err != nil {
			return 0, err
		}
		if r.Off == lines.Addr+at {
			return uint64(r.Addend), nil
		}
	}
	return 0, nil
}
