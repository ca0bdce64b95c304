//go:build linux

package arrivals

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"tare/lab/engine"
	"tare/lab/profile"
	"tare/lab/ruler"
	"tare/lab/symbols"
	record "tare/notebook/kinds/arrivals"
)

const (
	profileHz      = 499  // not a divisor of the kernel's tick rate
	mostStacks     = 3000 // different stacks in a record; beyond that the rarest are shortened
	shortStack     = 6    // frames that a shortened stack keeps, of the program and of the kernel each
	deepestProfile = 64   // frames kept of any stack, the outermost
)

// sampling is a running sampling of all CPUs of the host.
type sampling struct {
	*profile.Sampler
	kind engine.Kind
}

// sample starts the sampling for the time in which containers of an engine are started.
func (host) sample(k engine.Kind) (profiling, error) {
	s, err := profile.Begin(profileHz)
	if err != nil {
		return nil, err
	}
	return sampling{s, k}, nil
}

// Stop implements profiling.
func (p sampling) Stop() (*record.Profile, error) {
	s, err := p.Sampler.Stop()
	if err != nil {
		return nil, err
	}
	kernel, err := symbols.Kernel()
	if err != nil {
		return nil, err
	}
	n := naming{kernel: kernel, files: map[string]*symbols.Program{}, index: map[string]int{}, roles: map[*profile.Process]string{}, kind: p.kind}
	out := &record.Profile{Hz: profileHz, OfS: s.OfS, Samples: len(s.Stacks), Lost: int64(s.Lost)}
	var all []record.ProfileStack
	for _, st := range s.Stacks {
		r := record.ProfileStack{Role: n.role(st.Process), User: []int{n.place(n.program(st.Process))}, N: 1}
		for _, f := range slices.Backward(st.User) {
			r.User = append(r.User, n.place(n.function(f)))
		}
		for _, ip := range slices.Backward(st.Kernel) {
			r.Kernel = append(r.Kernel, n.place(kernel.Name(ip)))
		}
		r.User, r.Kernel = r.User[:min(len(r.User), deepestProfile)], r.Kernel[:min(len(r.Kernel), deepestProfile)]
		all = append(all, r)
	}
	out.Names = n.names
	out.Stacks = added(all)
	if len(out.Stacks) > mostStacks {
		slices.SortStableFunc(out.Stacks, func(a, b record.ProfileStack) int { return cmp.Compare(b.N, a.N) })
		for i := mostStacks; i < len(out.Stacks); i++ {
			r := &out.Stacks[i]
			r.User, r.Kernel = r.User[:min(len(r.User), shortStack)], r.Kernel[:min(len(r.Kernel), shortStack)]
			out.Shorter += r.N
		}
		out.Stacks = added(out.Stacks)
	}
	out.Stacks = record.Fold(out.Stacks)
	return out, nil
}

// added sums stacks that are the same, and sorts them by their frames.
func added(all []record.ProfileStack) (some []record.ProfileStack) {
	order := func(a, b record.ProfileStack) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), slices.Compare(a.User, b.User), slices.Compare(a.Kernel, b.Kernel))
	}
	slices.SortStableFunc(all, order)
	for _, s := range all {
		if n := len(some); n > 0 && order(some[n-1], s) == 0 {
			some[n-1].N += s.N
			continue
		}
		some = append(some, s)
	}
	return some
}

// naming maps addresses to functions and processes to roles.
type naming struct {
	kernel *symbols.Table
	files  map[string]*symbols.Program // nil: the file cannot be read
	names  []string
	index  map[string]int
	roles  map[*profile.Process]string
	kind   engine.Kind
}

// place is the index of a name among the names; a new name is added.
func (n *naming) place(name string) int {
	i, known := n.index[name]
	if !known {
		i = len(n.names)
		n.names, n.index[name] = append(n.names, name), i
	}
	return i
}

// program is the name of a process's program.
func (n *naming) program(p *profile.Process) string {
	switch {
	case p.Exe == "":
		return cmp.Or(p.Name, "unknown")
	case p.PID == os.Getpid():
		return "tare"
	}
	return filepath.Base(onDisk(p.Exe))
}

// onDisk is the path of the file from which a program in memory was copied: runc runs from such a copy.
func onDisk(path string) string {
	path = strings.TrimSuffix(path, " (deleted)")
	if rest, ok := strings.CutPrefix(path, "/memfd:"); ok {
		name, _, _ := strings.Cut(rest, ":")
		name = strings.TrimSuffix(name, "_cloned")
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
		return name
	}
	return path
}

// function is the name of the function that contains a place in a file, or else the name of the file.
func (n *naming) function(f profile.Frame) string {
	if f.File == "" {
		return "[unknown]"
	}
	file := onDisk(f.File)
	p, known := n.files[file]
	if !known && filepath.IsAbs(file) {
		at := file
		if _, err := os.Stat(at); err != nil { // the runtime was started by another path, from a namespace of its own
			if found, err := exec.LookPath(filepath.Base(file)); err == nil {
				at = found
			}
		}
		p, _ = symbols.Open(at) // a file that is gone or is not a program has no functions
		n.files[file] = p
	}
	if p != nil {
		if name := p.Name(f.Offset); name != "" {
			return name
		}
	}
	return "[" + filepath.Base(file) + "]"
}

// role says to whom a process belongs: by the program that it was started with, or else by its parent.
func (n *naming) role(p *profile.Process) string {
	if r, known := n.roles[p]; known {
		return r
	}
	n.roles[p] = record.ProfileOthers // ends a circle of parents, which only a reused process ID could make
	parent := record.ProfileOthers
	if p.Parent != nil {
		parent = n.role(p.Parent)
	}
	r := parent
	switch base := filepath.Base(onDisk(p.Exe)); {
	case p.PID == os.Getpid():
		r = record.ProfileClient
	case parent == record.ProfileGuest, strings.HasSuffix(p.Exe, filepath.Base(ruler.Program)):
		r = record.ProfileGuest
	case slices.Contains(n.kind.Daemons, base):
		r = record.ProfileEngine
	case parent == record.ProfileClient: // what Tare started is the engine's program
		r = record.ProfileEngine
	case p.Exe == "" && (p.PID == 2 || parent == record.ProfileOwn || p.Parent == nil || p.Parent.PID == 2):
		r = record.ProfileOwn
	}
	n.roles[p] = r
	return r
}
