//go:build linux

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// The values are those of bpf/trace.h.
const (
	roleWork = iota
	roleVCPU
	roleIO
	roleEmulator
	roles
	roleRuler = roles
	roleClock = roles + 1

	launchers = 2 // from a ruler's role to its launchers'
)

var roleNames = [roles]string{notebook.RoleWork, notebook.RoleVCPU, notebook.RoleIO, notebook.RoleEmulator}

// role returns the number of a role.
func role(name string) uint32 {
	if name == notebook.RoleRuler {
		return roleRuler
	}
	return uint32(max(0, slices.Index(roleNames[:], name)))
}

// look mirrors the struct of that name in bpf/trace.h.
type look struct {
	Zero                                                                                                uint64
	Cores, Follow, Stacks, Events, Gather, Seeded, Open, Spans, Main, Dying, Each, Unified, Queues, Net uint32
	Begin, End, Died, Offset, Synced                                                                    uint64
}

// The number of seats, and the size of each in bytes (bpf/trace.h).
const (
	seats    = 16384
	seatSize = 64
)

// Offsets in look of the fields that are changed while programs run.
const (
	gatherAt = 24
	openAt   = 32
	spansAt  = 36
	netAt    = 60
	beginAt  = 64
	endAt    = 72
)

// clock reads the clock that the programs use, in nanoseconds.
func clock() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil { // every kernel has this clock
		panic(err)
	}
	return uint64(ts.Nano())
}

func (k *Kit) put(name string, at uint64, v any) error {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err)
	}
	if _, err := k.memory.WriteAt(b, int64(k.at[name]+at)); err != nil {
		return fmt.Errorf("the programs' variable %s: %w", name, err)
	}
	return nil
}

func (k *Kit) get(name string, v any) error {
	b := make([]byte, binary.Size(v))
	if _, err := k.memory.ReadAt(b, int64(k.at[name])); err != nil {
		return fmt.Errorf("the programs' variable %s: %w", name, err)
	}
	_, err := binary.Decode(b, binary.NativeEndian, v)
	return err
}

// followed returns the roles that the time breakdown covers, one bit for each. They are the work's own threads or, for a VM, its
// virtual CPUs. In a sandbox the threads of its kernel are added, because they do what the host's kernel does for other guests.
func followed(threads []engine.Thread) uint32 {
	has := map[string]bool{}
	for _, th := range threads {
		has[th.Role] = true
	}
	switch {
	case has[notebook.RoleVCPU]:
		return 1 << roleVCPU
	case has[notebook.RoleEmulator]:
		return 1<<roleWork | 1<<roleEmulator
	}
	return 1 << roleWork
}

// tables gives the programs what is the same for all trials.
func (k *Kit) tables() error {
	var reasons [512]uint8
	for nr, r := range syscallReasons {
		reasons[nr] = r
	}
	cache, node := cpuDomains()
	return errors.Join(k.put("reasons", 0, reasons), k.put("cache_of", 0, cache), k.put("node_of", 0, node), k.put("kinds_of_calls", 0, kindsOfCalls))
}

// perfEvent is an open perf event with a program attached to it.
type perfEvent int

func (e perfEvent) Close() error { return unix.Close(int(e)) }

// attachPerf opens the event on each CPU, for everything that runs there, and attaches the program to it. For a tracepoint one CPU is
// enough, because its event is the same on all of them.
func (t *Trace) attachPerf(program string, attr unix.PerfEventAttr) error {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return err
	}
	attr.Size = unix.PERF_ATTR_SIZE_VER1 // every kernel knows the fields used here
	if attr.Type == unix.PERF_TYPE_TRACEPOINT {
		online = online[:1]
	}
	for _, cpu := range online {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("perf_event_open on CPU %d: %w", cpu, err)
		}
		t.links = append(t.links, perfEvent(fd))
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, t.kit.coll.Programs[program].FD()); err != nil {
			return fmt.Errorf("its program on CPU %d: %w", cpu, err)
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("enabling it on CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// cpuDomains numbers each CPU's last-level cache and NUMA node. An unknown one is 0, so that a migration is never counted as one between
// domains by mistake.
func cpuDomains() (cache, node [1024]uint8) {
	number := map[string]uint8{} // by the CPUs that share one, because there may be more CPUs than a uint8 has numbers
	domain := func(pattern string) uint8 {
		names, err := filepath.Glob(pattern) // the pattern is well formed
		if err != nil || len(names) == 0 {
			return 0
		}
		b, err := os.ReadFile(names[len(names)-1])
		if err != nil {
			return 0
		}
		if _, known := number[string(b)]; !known {
			number[string(b)] = uint8(min(len(number)+1, math.MaxUint8))
		}
		return number[string(b)]
	}
	for cpu := range cache {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", cpu)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		cache[cpu] = domain(dir + "/cache/index*/shared_cpu_list")
		if nodes, err := filepath.Glob(dir + "/node[0-9]*"); err == nil && len(nodes) > 0 {
			n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node"))
			if err == nil {
				node[cpu] = uint8(n)
			}
		}
	}
	return cache, node
}

// iterate runs a program once for each thread on the host.
func (k *Kit) iterate(program string) error {
	it, err := link.AttachIter(link.IterOptions{Program: k.coll.Programs[program]})
	if err != nil {
		return fmt.Errorf("going through the host's threads: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return fmt.Errorf("going through the host's threads: %w", err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("going through the host's threads: %w", err)
	}
	return nil
}

// empty removes all entries of a map, or sets those of an array with a value for each CPU to zero. Maps of other types are left alone.
func empty(m *ebpf.Map) error {
	switch m.Type() {
	case ebpf.Hash, ebpf.LRUHash, ebpf.StackTrace:
		return remove(m)
	case ebpf.PerCPUArray:
		cpus, err := ebpf.PossibleCPU()
		if err != nil {
			return err
		}
		for i := range m.MaxEntries() {
			if err := m.Put(i, slices.Repeat([][]byte{make([]byte, m.ValueSize())}, cpus)); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes all entries of a map.
func remove(m *ebpf.Map) error {
	var key []byte
	for {
		next, err := m.NextKeyBytes(nil)
		if err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		if slices.Equal(key, next) {
			return errors.New("a key cannot be removed")
		}
		key = next
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
}

// missed returns how often the kernel skipped a program because another one was running on that CPU.
func (k *Kit) missed() (n uint64) {
	for _, p := range k.coll.Programs {
		if s, err := p.Stats(); err == nil { // a kernel without these statistics does not count
			n += s.RecursionMisses
		}
	}
	return n
}
