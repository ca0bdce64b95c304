package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Host is what is kept of one host: its facts, and its result for each configuration. All its folders are read together, so it counts once.
type Host struct {
	Name    string // of its first node in the fleet's folder, or its hostname; with a part of the ID where two hosts have the same one
	ID      string
	Folders []string // results folders, of one node each
	Nodes   []string // names of the nodes with these folders, or hostnames in them, each once; several: nodes that are one machine by its ID

	Virtual bool     // it is itself a VM
	Facts   []fact   // by Factor
	Results []Result // in the order of the study
	LeftOut []*Omission

	Unfinished bool // a folder has fewer rounds than its study asks for
	Twice      bool // a configuration was measured with several images, lengths or kernels; only the one with the most rounds counts

	at        int // of its first folder
	study     study
	margin    float64
	reference notebook.Reference
}

// study is what the folders of a fleet have in common.
type study struct{ name, kind string }

// Result is a host's result for a configuration.
type Result struct {
	Of         *Subject
	Effect     stats.Effect   // logarithm of the cost relative to the baseline
	Cost       stats.Quotient // as the host's own summary has it: above 1 is worse
	Rounds     int            // that count in it
	Trials     int            // measured ones, including failed ones
	Failed     int
	Doubtful   bool // bare metal differed from itself by as much
	Unreliable bool // too many trials failed: it does not count
}

// Finding is the host's own verdict. Empty: it has none.
func (r Result) Finding(margin float64) stats.Verdict {
	switch {
	case !r.Cost.HasInterval():
		return ""
	case r.Doubtful || r.Unreliable:
		return stats.Inconclusive
	}
	return r.Cost.Verdict(margin)
}

// Subject is a configuration, as all hosts of a fleet may have it.
type Subject struct {
	Row *data.Row // without a host and numbers (data.Row.Bare)
	at  int       // of the first host that has it: Row is from there
}

// Omission is a configuration that the study asks for and hosts left out for a reason of one code.
type Omission struct {
	Treatment notebook.Treatment
	Reason    *notebook.Message // of the first host
	at        int
}

// Factor is a property in which hosts may differ.
type Factor struct {
	Kind FactorKind
	Of   string // program, setting, vulnerability or workload; empty: there is one of its kind
}

// FactorKind is a kind of factor.
type FactorKind string

// Kinds of factors. Classes are formed by those up to Length; the others distinguish hosts.
const (
	CPUModel       FactorKind = "cpu_model"
	Cores          FactorKind = "cores" // CPUs that are online
	Kernel         FactorKind = "kernel"
	Engine         FactorKind = "engine" // version of a program of an engine
	GuestKernel    FactorKind = "guest_kernel"
	Image          FactorKind = "image"  // digests, of a workload
	Length         FactorKind = "length" // of a workload for which the study names only the least
	OS             FactorKind = "os"
	Memory         FactorKind = "memory" // GiB
	Virtualization FactorKind = "virtualization"
	Cgroup         FactorKind = "cgroup_version"
	Setting        FactorKind = "setting"
	Mitigation     FactorKind = "mitigation"
)

// forms says whether classes are formed by factors of a kind.
func (k FactorKind) forms() bool {
	return slices.Contains([]FactorKind{CPUModel, Cores, Kernel, Engine, GuestKernel, Image, Length}, k)
}

// Fact is the value of a factor on a host.
type Fact struct {
	Factor
	Value string
}

// fact is a Fact whose memory hosts share, because there are few different ones.
type fact = unique.Handle[Fact]

// add adds a fact. Later values of a factor join the first one.
func (h *Host) add(kind FactorKind, of, value string) {
	if value == "" {
		return
	}
	f := Factor{kind, of}
	for i, had := range h.Facts {
		if v := had.Value(); v.Factor == f {
			if all := strings.Split(v.Value, " and "); !slices.Contains(all, value) {
				h.Facts[i] = unique.Make(Fact{f, strings.Join(slices.Sorted(slices.Values(append(all, value))), " and ")}) // in whatever order hosts have them
			}
			return
		}
	}
	h.Facts = append(h.Facts, unique.Make(Fact{f, value}))
}

// Fact is the host's value of a factor; empty: not known.
func (h *Host) Fact(f Factor) string {
	for _, fact := range h.Facts {
		if v := fact.Value(); v.Factor == f {
			return v.Value
		}
	}
	return ""
}

// facts collects what distinguishes the host.
func (h *Host) facts(s *data.Summary) {
	of := s.Hosts[0].Host
	h.add(CPUModel, "", of.CPUModel)
	h.add(Cores, "", strconv.Itoa(len(of.CPUs)))
	h.add(Kernel, "", of.Kernel)
	versions := of.Versions()
	for _, program := range slices.Sorted(maps.Keys(versions)) {
		h.add(Engine, program, versions[program])
	}
	for _, r := range s.Rows {
		if notebook.HasMachine(r.Treatment.Platform) {
			for _, kernel := range r.Kernels {
				h.add(GuestKernel, "", kernel)
			}
		}
	}
	for _, r := range s.Rows {
		if r.Rounds > 0 {
			h.add(Image, r.Treatment.Workload, strings.TrimSpace(short(r.Image.Digest)+" "+short(r.Image.Input)))
		}
	}
	h.add(OS, "", of.OS)
	h.add(Memory, "", strconv.FormatInt((of.Memory+(1<<29))>>30, 10))
	h.add(Virtualization, "", cmp.Or(of.Virtualization, notebook.Absent))
	h.add(Cgroup, "", of.CgroupVersion)
	for _, setting := range of.SettingList() {
		h.add(Setting, setting.Name, setting.Value)
	}
	if of.Settings != nil {
		for _, name := range slices.Sorted(maps.Keys(of.Settings.Mitigations)) {
			h.add(Mitigation, name, of.Settings.Mitigations[name])
		}
	}
}

// short is enough of a digest to tell it from others.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}

// key identifies a configuration on any host. The host, its cores, the machine of the load, the image, a length that the host chose and the size of the
// whole host may differ: they are facts of hosts. The kernel of VMs may differ as well, unless the host has the configuration with several.
func key(r *data.Row, asked notebook.Treatment) data.Identity {
	id := r.Identity()
	id.HostID, id.HostCores, id.Digest, id.Input = "", r.Treatment.HostCores, "", ""
	id.Assigned, id.LoadFrom, id.Variant.Kernel = data.Assigned(asked), fmt.Sprint(id.LoadFrom != ""), ""
	if r.Treatment.Instance.Name == notebook.HostSize {
		id.Size = data.Size{}
	}
	return id
}
