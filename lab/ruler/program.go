//go:build linux

package ruler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// defaultPath is where programs are looked up when the order's environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// program is a command that was found.
type program struct {
	path string
	argv []string
	env  []string
	dir  string
	uid  uint32
	gid  uint32

	groups []uint32 // supplementary

	small      bool // Order.SmallPages
	mergeable  bool // Order.Mergeable
	restorable bool // Order.Restorable
}

// newProgram finds an order's command like execvpe: in the folders of the order's PATH, or relative to the order's folder if its
// name contains a slash. Unlike execvpe it does not pass a text file without #! to a shell.
func newProgram(o *Order, scratch string) (*program, error) {
	p := &program{argv: o.Argv, env: o.Env, dir: orElse(o.Dir, scratch), uid: o.UID, gid: o.GID, groups: o.Groups, small: o.SmallPages, mergeable: o.Mergeable, restorable: o.Restorable}
	st, err := os.Stat(p.dir)
	if errors.Is(err, fs.ErrNotExist) { // for example a mount over /tmp hides the image's own folder
		if err = os.MkdirAll(p.dir, 0o755); err == nil {
			st, err = os.Stat(p.dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the folder to run in: %w", err)
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("the folder to run in, %s, is not a folder", p.dir)
	}
	name := o.Argv[0]
	if strings.Contains(name, "/") {
		p.path = p.in(name)
		if err := executable(p.path); err != nil {
			return nil, p.explain(err)
		}
		return p, nil
	}
	path := defaultPath
	for _, e := range o.Env { // the last one counts, as in a shell
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	var denied string
	for _, dir := range filepath.SplitList(path) {
		found := p.in(filepath.Join(orElse(dir, "."), name))
		switch err := executable(found); {
		case err == nil:
			p.path = found
			return p, nil
		case errors.Is(err, fs.ErrPermission):
			denied = orElse(denied, found)
		}
	}
	if denied != "" {
		p.path = denied
		return nil, p.explain(syscall.EACCES)
	}
	return nil, fmt.Errorf("no such command in the guest: %s (PATH is %s)", name, path)
}

// credentials reports whether the program's user or groups differ from the ruler's. The process's own group as a supplementary
// group changes nothing.
func (p *program) credentials() (bool, error) {
	own, err := os.Getgroups()
	if err != nil {
		return false, fmt.Errorf("reading the ruler's own groups: %w", err)
	}
	mine, wanted := map[uint32]bool{0: true}, map[uint32]bool{0: true} // the ruler is root
	for _, g := range own {
		mine[uint32(g)] = true
	}
	for _, g := range p.groups {
		wanted[g] = true
	}
	return p.uid != 0 || p.gid != 0 || !maps.Equal(mine, wanted), nil
}

// in makes a name relative to the working folder absolute.
func (p *program) in(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// executable checks that path is a file that somebody may execute.
func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "execute", Path: path, Err: syscall.EACCES}
	}
	return nil
}

// explain says why p could not be started.
func (p *program) explain(err error) error {
	st, statErr := os.Stat(p.path)
	switch {
	case errors.Is(err, syscall.ENOENT) && statErr != nil:
		return fmt.Errorf("no such command in the guest: %s", p.path)
	case errors.Is(err, syscall.ENOENT):
		if i, err := Interpreter(p.path); err == nil && i != "" {
			return fmt.Errorf("%s cannot be started: the guest does not have its interpreter, %s", p.path, i)
		}
		return fmt.Errorf("%s cannot be started: its interpreter is not in the guest: %w", p.path, err)
	case errors.Is(err, syscall.EACCES) && statErr == nil && !st.Mode().IsRegular():
		return fmt.Errorf("%s cannot be started: it is not a file (%s)", p.path, st.Mode().Type())
	case errors.Is(err, syscall.EACCES) && statErr == nil && st.Mode()&0o111 == 0:
		return fmt.Errorf("%s cannot be started: its mode %v lets nobody execute it (chmod +x in the image)", p.path, st.Mode())
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s cannot be started in %s as user %d: permission denied (by a mode on the way, or a file system "+
			"mounted noexec)", p.path, p.dir, p.uid)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s cannot be started: it is neither a program for %s nor a script that begins with #! and its interpreter", p.path, runtime.GOARCH)
	case errors.Is(err, syscall.EPERM) && p.uid != 0:
		return fmt.Errorf("%s cannot be started: the ruler may not become user %d: %w", p.path, p.uid, err)
	default:
		return fmt.Errorf("%s cannot be started in %s: %w", p.path, p.dir, err)
	}
}

// Interpreter is the program that runs a file: of a script's #! line, or a dynamic program's loader; "" for none.
func Interpreter(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 256) // as much of the line as the kernel reads
	n, _ := io.ReadFull(f, head)
	if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		words := append(strings.Fields(string(line)), "")
		return words[0], nil
	}
	by, err := loader(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return by, nil
}

const maxLoader = 4096 // bytes of its path: PATH_MAX

// loader reads an ELF file's interpreter (PT_INTERP in elf(5)); "" for none. (Package debug/elf would be a twelfth of the program
// ruler, and every guest would carry it.)
func loader(f io.ReaderAt) (string, error) {
	read := func(at uint64, n int) ([]byte, error) {
		b := make([]byte, n)
		if at > math.MaxInt64 {
			return nil, io.ErrUnexpectedEOF
		}
		if m, err := f.ReadAt(b, int64(at)); m < n {
			return nil, fmt.Errorf("%d bytes at %d: %w", n, at, err)
		}
		return b, nil
	}
	const class, data, two, little = 4, 5, 2, 1 // in e_ident: 64 bits; little-endian, as on all guests' machines
	ident, err := read(0, 16)
	if err != nil || string(ident[:class]) != "\x7fELF" {
		return "", errors.New("not an ELF file, which begins with 0x7f and ELF")
	}
	// The file's header says where the program headers begin, and their size and number; each has its type, offset and length.
	headers, each, place, length, word := 28, 42, 4, 16, 4
	if ident[class] == two {
		headers, each, place, length, word = 32, 54, 8, 32, 8
	}
	if ident[data] != little {
		return "", errors.New("an ELF file for a big-endian machine")
	}
	number := func(b []byte, at int) uint64 {
		if word == 4 {
			return uint64(binary.LittleEndian.Uint32(b[at:]))
		}
		return binary.LittleEndian.Uint64(b[at:])
	}
	h, err := read(0, each+4)
	if err != nil {
		return "", err
	}
	size, at := binary.LittleEndian.Uint16(h[each:]), number(h, headers)
	for i := range binary.LittleEndian.Uint16(h[each+2:]) {
		p, err := read(at+uint64(i)*uint64(size), length+word)
		if err != nil {
			return "", err
		}
		const interp = 3
		if binary.LittleEndian.Uint32(p) != interp {
			continue
		}
		name, err := read(number(p, place), int(min(number(p, length), maxLoader)))
		return strings.TrimRight(string(name), "\x00"), err
	}
	return "", nil
}
