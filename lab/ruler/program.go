//go:build linux

package ruler

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// defaultPath is where programs are sought when the order's environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// program is a command that was found.
type program struct {
	path string
	argv []string
	env  []string
	dir  string
	uid  uint32
	gid  uint32

	fixed, small bool // Order.FixedAddresses, Order.SmallPages
	restorable   bool // Order.Restorable
}

// newProgram finds an order's command as execvpe does: in the folders of the order's PATH, or relative to the order's
// folder when its name has a slash. Unlike execvpe it gives no text file without #! to a shell.
func newProgram(o *Order, scratch string) (*program, error) {
	p := &program{argv: o.Argv, env: o.Env, dir: orElse(o.Dir, scratch), uid: o.UID, gid: o.GID, fixed: o.FixedAddresses, small: o.SmallPages, restorable: o.Restorable}
	st, err := os.Stat(p.dir)
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

// in makes a name relative to the folder to run in absolute.
func (p *program) in(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// executable says whether path is a file that somebody may execute.
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

// explain says in words why p could not be started.
func (p *program) explain(err error) error {
	st, statErr := os.Stat(p.path)
	switch {
	case errors.Is(err, syscall.ENOENT) && statErr != nil:
		return fmt.Errorf("no such command in the guest: %s", p.path)
	case errors.Is(err, syscall.ENOENT):
		if i, err := Interpreter(p.path); err == nil && i != "" {
			return fmt.Errorf("%s cannot be started: the guest does not have %s, which it asks for to be run by", p.path, i)
		}
		return fmt.Errorf("%s cannot be started: what it asks for to be run by is not in the guest: %w", p.path, err)
	case errors.Is(err, syscall.EACCES) && statErr == nil && !st.Mode().IsRegular():
		return fmt.Errorf("%s cannot be started: it is not a file (%s)", p.path, st.Mode().Type())
	case errors.Is(err, syscall.EACCES) && statErr == nil && st.Mode()&0o111 == 0:
		return fmt.Errorf("%s cannot be started: its mode %v lets nobody execute it (chmod +x in the image)", p.path, st.Mode())
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s cannot be started in %s as user %d: permission denied (by a mode on the way, or a file system "+
			"mounted noexec)", p.path, p.dir, p.uid)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s cannot be started: it is neither a program for %s nor a script that begins with #! and its interpreter", p.path, runtime.GOARCH)
	case errors.Is(err, syscall.EPERM) && p.fixed:
		return fmt.Errorf("%s cannot be started at addresses that are not random: the guest's seccomp filter forbids personality(2): %w", p.path, err)
	case errors.Is(err, syscall.EPERM) && p.uid != 0:
		return fmt.Errorf("%s cannot be started: the ruler may not become user %d: %w", p.path, p.uid, err)
	default:
		return fmt.Errorf("%s cannot be started in %s: %w", p.path, p.dir, err)
	}
}

// Interpreter is what a file names to be run by: a script's #! line, a dynamic program's loader. "": nothing.
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
	e, err := elf.NewFile(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}
