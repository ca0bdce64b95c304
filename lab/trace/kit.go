//go:build linux

package trace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"tare/notebook"
)

// programs are what each probe loads into the kernel. The scheduler's follow the guest's threads, which all others need.
var programs = map[string][]string{
	notebook.ProbeScheduler:  {"switched", "forked", "executed", "exited", "seed"},
	notebook.ProbeIO:         {"block_start", "block_end"},
	notebook.ProbeMemory:     {"faulted"},
	notebook.ProbeAccounting: {"sampled"},
	notebook.ProbeHypervisor: {"vcpu_exit", "vcpu_entry"},
}

// older are what a probe loads where the kernel has not what programs attach to.
var older = map[string][]string{notebook.ProbeIO: {"block_issue", "block_end"}}

// what each probe's programs attach to, in words.
var attachment = map[string]string{
	notebook.ProbeScheduler:  "the scheduler's tracepoints (Linux 5.18 or later with BTF)",
	notebook.ProbeIO:         "the block devices' tracepoints (Linux 5.18 or later with BTF)",
	notebook.ProbeMemory:     "perf's software event page-faults",
	notebook.ProbeAccounting: "perf's software event cpu-clock",
	notebook.ProbeHypervisor: "KVM's tracepoints",
}

// Kit is a set of probes that are ready to look. One look is taken at a time.
type Kit struct {
	names   []string
	missing map[string]string // by probe: what of it this host cannot do, and why

	coll    *ebpf.Collection    // nil: no BPF here
	loaded  map[string]bool     // by probe
	chosen  map[string][]string // by probe: programs, or those for older kernels
	memory  *ebpf.Memory        // the programs' variables
	at      map[string]uint64
	misses  uint64 // of the programs, when last asked
	kvm     *kvmFormat
	symbols *symbols // read when first needed
}

// Open makes the named probes ready; what this host cannot do Missing and each trial's own say. An error is a name that is
// not known.
func Open(names []string) (*Kit, error) {
	for _, n := range names {
		if !slices.Contains(notebook.ProbeNames, n) {
			return nil, fmt.Errorf("probe %q: one of %s was expected", n, strings.Join(notebook.ProbeNames, ", "))
		}
	}
	k := &Kit{names: slices.Clone(names), missing: map[string]string{}, loaded: map[string]bool{}}
	if slices.ContainsFunc(names, func(n string) bool { return n == notebook.ProbeStacks || programs[n] != nil }) {
		k.load()
	}
	return k, nil
}

// Missing says what of the probes this host cannot do, and why, by probe.
func (k *Kit) Missing() map[string]string { return maps.Clone(k.missing) }

func (k *Kit) wants(name string) bool { return slices.Contains(k.names, name) }

// load loads the programs of the probes that are wanted and that the kernel takes.
func (k *Kit) load() {
	without := func(name, why string) {
		for _, n := range k.names {
			switch {
			case n == name:
				k.missing[n] = why
			case name == notebook.ProbeScheduler && (programs[n] != nil || n == notebook.ProbeStacks):
				k.missing[n] = "its programs stand on the scheduler's"
				if !k.wants(name) {
					k.missing[n] += ": " + why
				}
			}
		}
	}
	if len(object) == 0 {
		without(notebook.ProbeScheduler, "no BPF programs are built for this kind of machine")
		return
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // it is this program's own
		panic(err)
	}
	groups := []string{notebook.ProbeScheduler}
	for _, n := range k.names {
		if n != notebook.ProbeScheduler && programs[n] != nil {
			groups = append(groups, n)
		}
	}
	if slices.Contains(groups, notebook.ProbeHypervisor) {
		if k.kvm, err = readKVMFormat(); err != nil {
			without(notebook.ProbeHypervisor, err.Error())
			groups = slices.DeleteFunc(groups, func(n string) bool { return n == notebook.ProbeHypervisor })
		}
	}
	// All at once; where the kernel refuses, one after the other to learn what it refuses.
	k.chosen = maps.Clone(programs)
	k.coll, err = k.loadGroups(spec, groups)
	if err != nil && len(groups) > 1 {
		c, alone := k.loadGroups(spec, groups[:1])
		if alone != nil {
			without(notebook.ProbeScheduler, refusal(notebook.ProbeScheduler, alone))
			return
		}
		c.Close()
		groups = slices.DeleteFunc(groups, func(n string) bool {
			if n == notebook.ProbeScheduler {
				return false
			}
			c, err := k.loadGroups(spec, []string{notebook.ProbeScheduler, n})
			if err != nil && older[n] != nil {
				k.chosen[n] = older[n]
				if c, err = k.loadGroups(spec, []string{notebook.ProbeScheduler, n}); err == nil {
					k.missing[n] = "requests that the kernel's own threads pass on to a device are not seen before Linux 6.5"
				}
			}
			if err != nil {
				without(n, refusal(n, err))
				return true
			}
			c.Close()
			return false
		})
		k.coll, err = k.loadGroups(spec, groups)
	}
	if err != nil {
		k.coll = nil
		without(notebook.ProbeScheduler, refusal(notebook.ProbeScheduler, err))
		return
	}
	if k.memory, err = k.coll.Maps[".bss"].Memory(); err != nil {
		k.coll.Close()
		k.coll = nil
		without(notebook.ProbeScheduler, "the programs' variables cannot be mapped: "+err.Error())
		return
	}
	k.at = map[string]uint64{}
	for name, v := range spec.Variables {
		k.at[name] = uint64(v.Offset)
	}
	if err := k.tables(); err != nil {
		k.coll.Close()
		k.coll = nil
		without(notebook.ProbeScheduler, err.Error())
		return
	}
	for _, g := range groups {
		k.loaded[g] = true
	}
}

// tables gives the programs what stays the same from trial to trial.
func (k *Kit) tables() error {
	var reasons [512]uint8
	for nr, r := range syscallReasons {
		reasons[nr] = r
	}
	cache, node := cpuDomains()
	errs := []error{k.put("reasons", 0, reasons), k.put("cache_of", 0, cache), k.put("node_of", 0, node)}
	if k.kvm != nil {
		errs = append(errs, k.put("reason_at", 0, k.kvm.reasonAt))
	}
	return errors.Join(errs...)
}

func (k *Kit) loadGroups(spec *ebpf.CollectionSpec, groups []string) (*ebpf.Collection, error) {
	spec = spec.Copy()
	keep := map[string]bool{}
	for _, g := range groups {
		for _, p := range k.chosen[g] {
			keep[p] = true
		}
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !keep[name] })
	return ebpf.NewCollection(spec)
}

// refusal says in a line why the kernel takes a probe's programs not.
func refusal(name string, err error) string {
	why, _, _ := strings.Cut(err.Error(), "\n")
	if _, verified := errors.AsType[*ebpf.VerifierError](err); !verified && errors.Is(err, os.ErrPermission) {
		why += "; it needs root with CAP_BPF and CAP_PERFMON, outside of a container that forbids bpf(2)"
	}
	return "the kernel does not take its programs, which need " + attachment[name] + ": " + why
}

// Close gives back what Open took.
func (k *Kit) Close() error {
	if k.coll != nil {
		k.coll.Close()
		k.coll = nil
	}
	if k.kvm != nil {
		err := k.kvm.close()
		k.kvm = nil
		return err
	}
	return nil
}

// attachTracing attaches a program to its tracepoint.
func (k *Kit) attachTracing(name string) (link.Link, error) {
	l, err := link.AttachTracing(link.TracingOptions{Program: k.coll.Programs[name]})
	if err != nil {
		return nil, fmt.Errorf("attaching %s: %w", name, err)
	}
	return l, nil
}
