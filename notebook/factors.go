package notebook

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Factor is one of the ways in which treatments differ, in addition to their workload and its parameters. It is known everywhere by its
// name: in study files, in baselines and claims, on the axes of figures, in study.json.
type Factor struct {
	Name   string
	Unit   string   // of its values, if they are numbers
	Values []string // all possible values, in the order in which figures have them; nil: any text
	Number bool     // its values are numbers
	Listed bool     // a value may be a list with commas

	field *field // of a treatment; nil: Treatment.Factors has it
	hides bool   // figures and trends that name it mean it, even if a workload has a parameter of that name
}

// field gives access to a factor that is a field of a treatment. An empty value means that the treatment has none.
type field struct {
	of    func(Treatment) string
	clear func(*Treatment)
}

func text(at func(*Treatment) *string) *field {
	return &field{of: func(t Treatment) string { return *at(&t) }, clear: func(t *Treatment) { *at(t) = "" }}
}

var (
	instance  = &field{of: func(t Treatment) string { return t.Instance.Name }, clear: func(t *Treatment) { t.Instance = Instance{} }}
	hostCores = &field{of: func(t Treatment) string {
		if t.HostCores == 0 {
			return ""
		}
		return strconv.Itoa(t.HostCores)
	}, clear: func(t *Treatment) { t.HostCores = 0 }}
)

// The factors that are fields of a treatment.
var (
	FactorPlatform     = Factor{Name: "platform", Values: Platforms, field: text(func(t *Treatment) *string { return &t.Platform })}
	FactorEngine       = Factor{Name: "engine", field: text(func(t *Treatment) *string { return &t.Engine })}
	FactorAccelerator  = Factor{Name: "accelerator", Values: []string{KVM, KVMEmulated, TCG}, field: text(func(t *Treatment) *string { return &t.Accelerator })}
	FactorKernel       = Factor{Name: "kernel", field: text(func(t *Treatment) *string { return &t.Kernel })}
	FactorProvisioning = Factor{Name: "provisioning", Values: Provisionings, field: text(func(t *Treatment) *string { return &t.Provisioning })}
	FactorInstance     = Factor{Name: "instance", hides: true, field: instance}
	FactorNetwork      = Factor{Name: "network", Values: []string{NetMacvlan, NetUser, NetBridge, NetHost, NetNone}, hides: true, field: text(func(t *Treatment) *string { return &t.Network })}
	FactorIsolation    = Factor{Name: "isolation", hides: true, Values: slices.Concat(Layers, SingleLayers, []string{IsolationFull}), field: text(func(t *Treatment) *string { return &t.Isolation })}
	FactorMachine      = Factor{Name: "machine", Listed: true, field: text(func(t *Treatment) *string { return &t.Machine })}
	FactorHostCores    = Factor{Name: "host_cores", Unit: "CPU", Number: true, hides: true, field: hostCores}
)

// The factors that only some studies have. A kind of study may have more of its own.
var (
	FactorAddresses  = Factor{Name: "addresses", Values: []string{AddressesFixed, AddressesRandom}}
	FactorHugePages  = Factor{Name: "huge_pages", Values: HugePages}
	FactorNeighbours = Factor{Name: "neighbours"} // the busy guests next to the measured one: Neighbours.Text
	FactorCache      = Factor{Name: "cache", Values: Caches}
	FactorRoot       = Factor{Name: "root", Values: Roots}
	FactorDevices    = Factor{Name: "devices", Listed: true} // of the host, as CDI names them
	FactorRate       = Factor{Name: "rate", Unit: "1/s", Number: true}
	FactorSpacing    = Factor{Name: "spacing", Values: Spacings} // of the requests that come at a rate
	FactorFrom       = Factor{Name: "from", Values: Froms}       // what a request starts
	FactorPull       = Factor{Name: "pull"}                      // how a start gets its image: Pull.Text
	FactorMerging    = Factor{Name: "merging", Values: Mergings} // whether guests' programs ask the kernel to merge their pages
)

// Factors are all of these. A baseline is written in this order, up to the last that is a field.
var Factors = []Factor{
	FactorPlatform, FactorEngine, FactorAccelerator, FactorKernel, FactorProvisioning, FactorInstance, FactorNetwork, FactorIsolation, FactorMachine, FactorHostCores,
	FactorAddresses, FactorHugePages, FactorNeighbours, FactorCache, FactorRoot, FactorDevices, FactorRate, FactorSpacing, FactorFrom, FactorPull, FactorMerging,
}

// FactorNamed returns the factor of a name; false: Factors has none.
func FactorNamed(name string) (Factor, bool) {
	if i := slices.IndexFunc(Factors, func(f Factor) bool { return f.Name == name }); i >= 0 {
		return Factors[i], true
	}
	return Factor{}, false
}

// FactorNames are the names of the factors for which a condition is true, in order. A nil condition means all.
func FactorNames(what func(Factor) bool) (names []string) {
	for _, f := range Factors {
		if what == nil || what(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// IsField reports whether every treatment has the factor, as one of its fields.
func (f Factor) IsField() bool { return f.field != nil }

// Of is the factor's value in a treatment; empty: it has none.
func (f Factor) Of(t Treatment) string {
	if f.field != nil {
		return f.field.of(t)
	}
	return t.Factors[f.Name]
}

// fieldOf is the field that a figure or a trend means by a name; nil: it means what is Assigned.
func (t Treatment) fieldOf(name string) *field {
	f, known := FactorNamed(name)
	if _, own := t.Params[name]; !known || own && !f.hides {
		return nil
	}
	return f.field
}

// Value is the treatment's place on an axis: its value of a factor, or of a parameter of its workload. false: it has neither.
func (t Treatment) Value(axis string) (value string, has bool) {
	if f := t.fieldOf(axis); f != nil {
		return f.of(t), true
	}
	value, has = t.Assigned()[axis]
	return value, has
}

// Without returns the treatment without its value on an axis.
func (t Treatment) Without(axis string) Treatment {
	if f := t.fieldOf(axis); f != nil {
		f.clear(&t)
		return t
	}
	t.Params, t.Factors = maps.Clone(t.Params), maps.Clone(t.Factors)
	delete(t.Params, axis)
	delete(t.Factors, axis)
	return t
}

// Assigned are the workload's parameters together with those factors that are not fields, each under its name. No two have the same name.
// The caller must not change the map.
func (t Treatment) Assigned() map[string]string {
	switch {
	case len(t.Factors) == 0:
		return t.Params
	case len(t.Params) == 0:
		return t.Factors
	}
	all := maps.Clone(t.Params)
	maps.Copy(all, t.Factors)
	return all
}

// SameWork reports whether two treatments do the same work: workload, parameters and the factors that are not fields are equal.
func (t Treatment) SameWork(o Treatment) bool {
	return t.Workload == o.Workload && maps.Equal(t.Params, o.Params) && maps.Equal(t.Factors, o.Factors)
}

// Label names the treatment's workload with what is Assigned: "hashing{megabytes=64,rate=8}". Study.Images and Study.Syncs have it as their key.
func (t Treatment) Label() string { return Label(t.Workload, t.Assigned()) }

var pairOK = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]*=`) })

// SplitPairs splits KEY=VALUE,… at the commas, except for those in the value of a factor that may be a list.
func SplitPairs(text string) (pairs []string) {
	listed := false
	for _, part := range strings.Split(text, ",") {
		if listed && !pairOK().MatchString(part) {
			pairs[len(pairs)-1] += "," + part
			continue
		}
		key, _, _ := strings.Cut(part, "=")
		f, _ := FactorNamed(key)
		listed, pairs = f.Listed, append(pairs, part)
	}
	return pairs
}

// Where a process's mappings are.
const (
	AddressesRandom = "random" // the kernel places them at random: kernel.randomize_va_space is 2
	AddressesFixed  = "fixed"  // the same in each process of a program: kernel.randomize_va_space is 0
)

// Which pages a process has.
const (
	HugePagesHost    = "host"    // as the host has it
	HugePagesNever   = "never"   // no transparent huge pages: prctl(2), PR_SET_THP_DISABLE
	HugePagesMadvise = "madvise" // transparent huge pages where a process asks for them: a setting of the host
	HugePagesAlways  = "always"  // transparent huge pages without being asked: a setting of the host
	HugePagesLarge   = "large"   // anonymous memory in folios of 64 KiB without being asked, and no transparent huge pages: settings of the host
)

// Addresses and HugePages are all of these.
var (
	Addresses = []string{AddressesRandom, AddressesFixed}
	HugePages = []string{HugePagesHost, HugePagesNever, HugePagesMadvise, HugePagesAlways, HugePagesLarge}
)

// How requests that come at a rate follow each other.
const (
	SpacingEven    = "even"    // at equal intervals
	SpacingPoisson = "poisson" // at intervals that are exponentially distributed, as of many independent users
	SpacingBurst   = "burst"   // those of each second together, at its beginning
)

// Spacings are all of these.
var Spacings = []string{SpacingEven, SpacingPoisson, SpacingBurst}

// What a request for a container starts.
const (
	FromCreated  = "created"  // a container that was created and never ran
	FromSnapshot = "snapshot" // a container that was started, and saved while its first process waited for the work: the request restores it
)

// Froms are all of these.
var Froms = []string{FromCreated, FromSnapshot}

// Whether the programs in a guest ask the kernel to merge their equal pages (paper "virtualization-overheads", section 6.3.2). A VM's
// QEMU asks for the guest's memory in any case.
const (
	MergingUnasked = "unasked" // as programs are
	MergingAsked   = "asked"   // by prctl(2), PR_SET_MEMORY_MERGE, which they inherit
)

// Mergings are all of these.
var Mergings = []string{MergingUnasked, MergingAsked}

// Whose a guest's root is (paper "virtualization-overheads", section 6.4).
const (
	RootShared = "shared" // the image's, which all guests read, below what each writes
	RootCopied = "copied" // a copy of it for each guest, so that no two guests read one file
)

// Roots are all of these.
var Roots = []string{RootShared, RootCopied}

// What the host's page cache has before a start, of the files that the start reads.
const (
	CacheCold = "cold" // nothing of the guest's root, its files, and what its engine reads for it
	CacheWarm = "warm" // all of that
)

// Caches are both.
var Caches = []string{CacheCold, CacheWarm}
