// Package notebook is a study's folder: what was planned, the host as found, and an append-only record of
// every guest and every trial. It is the only thing that the laboratory (which writes it) and the desk (which
// reads it) have in common.
//
// A folder holds:
//
//	study.json      the study as run (Study); written once.
//	host.json       the host as first found (Host); written once.
//	guests.jsonl    one line for each guest that was provisioned (Guest).
//	trials.jsonl    one line for each trial, warm-ups and failures included (Trial).
//	sessions.jsonl  one line for each start and each end of `tare run` (Session).
//
// Lines are written whole and synced before work goes on. A kill can leave at most one torn last line; Open
// cuts it off (it never was a finished record) and Read passes over it.
package notebook

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// Version is the version of the folder's format. Readers refuse a newer one. Folders of version 1 hold sentences where later ones hold a
// [Message], and have the factors of a treatment among the parameters of its workload.
const Version = 2

// Names of the platforms (design, section 2).
const (
	BM   = "bm"   // bare metal
	CN   = "cn"   // container
	VM   = "vm"   // virtual machine
	VMCN = "vmcn" // container in a virtual machine
)

// Platforms are all of these.
var Platforms = []string{BM, CN, VM, VMCN}

// PlatformWords are the words for a platform that users may write: its name, or the word that PlatformNamed reads.
var PlatformWords = []string{BM, CN, VM, VMCN, "host", "container", "vm-container"}

// PlatformNamed is the name of the platform that a user's word stands for. Any other word it returns as it is.
func PlatformNamed(word string) string {
	switch word {
	case "host":
		return BM
	case "container":
		return CN
	case "vm-container":
		return VMCN
	}
	return word
}

// HasMachine reports whether the guests of a platform are virtual machines, or run in them.
func HasMachine(platform string) bool { return platform == VM || platform == VMCN }

// The ways of provisioning a guest: two of the CPUs that it gets (paper "pinning", section II-D), and one that limits nothing (paper
// "cloud-benchmarking", sections 2.3 and 2.4).
const (
	Vanilla = "vanilla" // a CPU quota; the scheduler chooses the cores
	Pinned  = "pinned"  // a fixed CPU set
	Whole   = "whole"   // no limit of CPUs or memory; a VM has all of the host's CPUs and nearly all of its memory
)

// Provisionings are all of these.
var Provisionings = []string{Vanilla, Pinned, Whole}

// Accelerators under a VM. What was measured under an emulating one is never a VM's cost: TCG emulates all of the
// guest, and some kinds of KVM its kernel mode, so that only its user mode runs on the CPU.
const (
	KVM         = "kvm" // with the CPU's own virtualization
	KVMEmulated = "kvm-emulated"
	TCG         = "tcg"
)

// How a guest is connected, where a study says so (paper "pinning", section VI: the announced study of the network).
const (
	NetBridge  = "bridge"  // as the platform's users have it: a network of its own behind a bridge, a tap in a VM
	NetMacvlan = "macvlan" // a second address of the bridge itself, without a cable: a macvlan link
	NetUser    = "user"    // of a VM: a network stack in QEMU's own process, which leads a port of the host into the guest
	NetHost    = "host"    // the network of what the container runs on
	NetNone    = "none"    // only the loopback
)

// Networks are all of these.
var Networks = []string{NetBridge, NetMacvlan, NetUser, NetHost, NetNone}

// Instance is an instance type: how many cores and how much memory a guest gets (paper "pinning", Table II).
type Instance struct {
	Name   string  `json:"name"`   // as the user wrote it: "large" or "0.5/1GB"
	Cores  float64 `json:"cores"`  // cores; a fraction only where a quota can give one
	Memory int64   `json:"memory"` // bytes
}

// Treatment is one combination of a workload, its parameters, and all factors.
type Treatment struct {
	ID           string            `json:"id"` // unique in its study and the same in every run of it
	Workload     string            `json:"workload"`
	Params       map[string]string `json:"params,omitempty"`  // the workload's own
	Factors      map[string]string `json:"factors,omitempty"` // those that are not fields below, by Factor.Name
	Platform     string            `json:"platform"`
	Engine       string            `json:"engine,omitempty"`
	Accelerator  string            `json:"accelerator,omitempty"`
	Kernel       string            `json:"kernel,omitempty"`       // of the guest, where one was named: a key of Study.Kernels
	Provisioning string            `json:"provisioning,omitempty"` // empty on bm
	Instance     Instance          `json:"instance"`
	Network      string            `json:"network,omitempty"`    // one of Networks; empty: bm, or what the engine gives by itself
	Isolation    string            `json:"isolation,omitempty"`  // of a rung of the isolation ladder: the topmost of Layers that it has, or IsolationFull
	Machine      string            `json:"machine,omitempty"`    // vm, vmcn: Machine.Text
	HostCores    int               `json:"host_cores,omitempty"` // CPUs of the host that are online meanwhile; 0: all
	Rounds       int               `json:"rounds,omitempty"`     // exactly so many; 0: as the design says
	AA           bool              `json:"aa,omitempty"`         // bare metal again under another name: the A/A check

	// OthersOffline: bare metal is to lose the host's other CPUs, as by a boot option (paper "pinning", section III-A), and not only to be
	// bound to its own. A guest's Notes say whether it did.
	OthersOffline bool `json:"others_offline,omitempty"`

	// MemoryWithheld: bare metal is to have the memory of its instance, as by a boot option, and what Tare and the load need. A guest's
	// Notes say how much memory it had.
	MemoryWithheld bool `json:"memory_withheld,omitempty"`
}

// Cores is how many CPUs the host had online for the treatment; 0 where that is not known.
func (h *Host) Cores(t Treatment) int { return cmp.Or(t.HostCores, len(h.CPUs)) }

// CHR is the container-to-host core ratio (paper "pinning", section IV-A): the treatment's cores over those that the
// host had online. NaN where the host's are not known.
func (h *Host) CHR(t Treatment) float64 {
	n := h.Cores(t)
	if n == 0 {
		return math.NaN()
	}
	return t.Instance.Cores / float64(n)
}

// Representative says whether the treatment's figures stand for the platform's cost. Those of a VM under
// emulation do not.
func (t Treatment) Representative() bool { return t.Accelerator == "" || t.Accelerator == KVM }

// Variant is what a treatment's guests are, in addition to their size and provisioning.
type Variant struct{ Platform, Engine, Accelerator, Kernel, Network, Isolation, Machine string }

// Variant is the treatment's.
func (t Treatment) Variant() Variant {
	return Variant{t.Platform, t.Engine, t.Accelerator, t.Kernel, t.Network, t.Isolation, t.Machine}
}

// SameButKernel says whether two treatments differ in nothing, or only in the kernel of their VMs.
func (t Treatment) SameButKernel(o Treatment) bool {
	t.Kernel = o.Kernel
	return t.SameWork(o) && t.Variant() == o.Variant() && t.Provisioning == o.Provisioning && t.Instance.SameSize(o.Instance) && t.AA == o.AA && t.HostCores == o.HostCores
}

// LeftOut is a treatment that the study asks for and this host, or this run, does not do, and why.
type LeftOut struct {
	Treatment Treatment `json:"treatment"`
	Reason    *Message  `json:"reason"`
}

// Metric says what a workload's figure is.
type Metric struct {
	Name string `json:"name" jsonschema:"required"` // "execution time"
	Unit string `json:"unit" jsonschema:"required"` // "s"

	// Better says which of its values are good. Empty, less is: it was so of every metric before there was a choice. Of a secondary metric it is
	// then not said, and such a metric is recorded and compared with nothing.
	Better Better `json:"better,omitempty" yaml:"better,omitempty"`
}

// Better is which values of a metric are the good ones.
type Better string

const (
	Lower   Better = "lower"  // as of a time
	Higher  Better = "higher" // as of a bandwidth
	Neither Better = "none"   // as of the number of CPUs that a program finds: it is compared, and no value is a cost
)

// MoreIsBetter says whether the metric's high values are the good ones.
func (m Metric) MoreIsBetter() bool { return m.Better == Higher }

// Directed says whether some of the metric's values are better than others.
func (m Metric) Directed() bool { return m.Better != Neither }

// check says what is wrong with a metric as a folder has it.
func (m Metric) check() error {
	switch m.Better {
	case "", Lower, Higher, Neither:
		return nil
	}
	return fmt.Errorf(`the metric %q has "better": %q: must be %q, %q or %q`, m.Name, m.Better, Lower, Higher, Neither)
}

// ByWorkload is the axis of a figure that shows the study's workloads side by side (paper "characterization", Figures 5.2 and 5.5 to 5.11). It names
// no workload. Its params hold for the workloads that have them.
const ByWorkload = "workload"

// Figure is a figure that the study's report draws: bars over one axis for each platform (paper "pinning", Figures 3
// to 8), or several metrics together, each on an axis of its own.
type Figure struct {
	Name     string            `json:"name" jsonschema:"required"`               // "Figure 3"
	Title    string            `json:"title" jsonschema:"required"`              // what it shows
	Workload string            `json:"workload"`                                 // the workload whose metric is drawn; empty: all (ByWorkload), or those of axes
	Metric   string            `json:"metric,omitempty" yaml:"metric,omitempty"` // a secondary metric for which the workload says which values are better; empty: the workload's metric
	Params   map[string]string `json:"params,omitempty"`                         // only treatments with these values; other parameters may have any value
	By       string            `json:"by"`                                       // the axis: a factor, a parameter of the workload, or ByWorkload; empty: the axes under axes
	Axes     []Axis            `json:"axes,omitempty"`

	// PublishedOf is the provisioning for which the axes' published values hold; empty: any.
	PublishedOf string `json:"published_of,omitempty" yaml:"published_of,omitempty"`
	Radar       bool   `json:"radar,omitempty"` // also draw the axes as a radar chart; they are always in a table
}

// OfWorkloads says whether the figure shows workloads side by side.
func (f Figure) OfWorkloads() bool { return f.Workload == "" && f.By == ByWorkload }

// Allowed are the values that some keys of a study file may have.
func (Figure) Allowed() map[string][]string {
	return map[string][]string{"published_of": Provisionings}
}

// Axis is one of several metrics that a figure shows together (paper "cloud-benchmarking", Figures 5 and 8 and Tables I to III).
type Axis struct {
	Name     string            `json:"name" jsonschema:"required"` // "Copy"
	Workload string            `json:"workload" jsonschema:"required"`
	Params   map[string]string `json:"params,omitempty"` // only treatments with these values
	Metric   string            `json:"metric,omitempty"` // the name of a secondary metric; empty: the workload's own

	// Published is the paper's result by platform: by how many per cent the metric is higher than on bare metal.
	Published map[string]float64 `json:"published,omitempty"`
}

// Design is the experiment's design (design, section 5).
type Design struct {
	Floor     int     `json:"floor"`              // rounds that are always run
	Cap       int     `json:"cap"`                // rounds that are never exceeded
	Precision float64 `json:"precision"`          // stop when every ratio's interval is within ± this share of the ratio; 0: there is no such rule
	Decide    float64 `json:"decide,omitempty"`   // stop when every ratio is known to be larger or smaller by this share at least, or by less; 0: there is no such rule
	Margin    float64 `json:"margin,omitempty"`   // the smallest difference that matters, a share: by it the study is sized and the answer is judged; 0: stats.Margin
	Against   string  `json:"against,omitempty"`  // what ratios are relative to, as ParseReference reads it; empty: bare metal
	Claims    bool    `json:"claims,omitempty"`   // stop when every claim of Study.Claims is decided that can be tested
	Trials    int     `json:"trials"`             // measured trials in each guest; where a rule may stop the study before Cap, the fewest (Guest.Trials)
	Emulated  int     `json:"emulated,omitempty"` // rounds of what is emulated and so never ranked; 0: Floor
	Warmups   int     `json:"warmups"`            // unmeasured trials before them, in each guest; they also warm the page cache
	Seen      int     `json:"seen,omitempty"`     // trials of each side of a ratio before a rule may end looking at it (stats.Floor); 0: as many as Floor has
	TimeoutS  float64 `json:"timeout_s"`          // seconds after which a trial is killed and has failed
	Order     string  `json:"order,omitempty"`    // how the guests of a round follow each other, one of Orders; empty: as suits each
}

// How the guests of a round that are compared with each other follow each other. Guest.Together has what was done.
const (
	OrderInterleaved = "interleaved" // they live at the same time, and do their trials in random turns
	OrderSequential  = "sequential"  // one is removed before the next is made
)

// Orders are the values of Design.Order.
var Orders = []string{OrderInterleaved, OrderSequential}

// Looks is how many times a study's intervals may be looked at: after every round up to Cap if a rule can stop the study earlier; 0: only
// at the end.
func (d Design) Looks() int { return Looks(d) }

// Looks is the same of intervals over the rounds of several studies: after each of all their rounds where a rule can stop one of them.
func Looks(designs ...Design) int {
	rounds, ruled := 0, false
	for _, d := range designs {
		rounds += d.Cap
		ruled = ruled || d.Precision > 0 || d.Decide > 0 || d.Claims
	}
	if !ruled {
		return 0
	}
	return rounds
}

// Most is the most rounds that the treatment takes part in. What no ranking will use is done in few: more rounds of an
// emulated VM would buy nothing.
func (d Design) Most(t Treatment) int {
	most := cmp.Or(t.Rounds, d.Cap)
	if !t.Representative() {
		most = min(most, cmp.Or(d.Emulated, d.Floor))
	}
	return most
}

// Least is how many rounds the study runs at least: the design's Floor, or fewer where no treatment takes part in so many.
func (s *Study) Least() int {
	most := 0
	for _, t := range s.Treatments {
		most = max(most, s.Design.Most(t))
	}
	if most == 0 {
		return s.Design.Floor
	}
	return min(s.Design.Floor, most)
}

// Fewest is how many measured trials a guest of the treatment does, at least. Nobody ranks emulated treatments: where the design gives
// them fewer rounds, one trial shows that they work.
func (d Design) Fewest(t Treatment) int {
	if !t.Representative() && 0 < d.Emulated && d.Emulated < d.Floor {
		return 1
	}
	return d.Trials
}

// Study is a study as it was run: all of it that decides what the trials mean.
type Study struct {
	Version    int                 `json:"version"`
	Tare       string              `json:"tare"` // version of the program
	Name       string              `json:"name"`
	Title      string              `json:"title,omitempty"`
	Source     string              `json:"source"` // the study file, as read
	Hash       string              `json:"hash"`   // of what is run: a folder goes on only with the same
	Seed       uint64              `json:"seed"`   // of the order of treatments in the rounds
	Created    time.Time           `json:"created"`
	Design     Design              `json:"design"`
	Metrics    map[string]Metric   `json:"metrics"`        // by workload
	Also       map[string][]Metric `json:"also,omitempty"` // by workload: the secondary metrics of its trials, by Metric.Name
	Figures    []Figure            `json:"figures,omitempty"`
	Explain    []string            `json:"explain,omitempty"`   // the tracers; each guest then did as many traced trials as others
	Claims     []string            `json:"claims,omitempty"`    // sets of published claims that it is about: "pinning"
	Ports      map[string]int      `json:"ports,omitempty"`     // by workload: where its service listens
	Syncs      map[string]bool     `json:"syncs,omitempty"`     // by Label: whether results rest on synced writes; without an entry: not known
	LoadFrom   string              `json:"load_from,omitempty"` // the machine that services were asked from, ssh://…; empty: the host
	KSM        string              `json:"ksm,omitempty"`       // how the host's kernel merged identical pages during the run, one of KSMSettings; empty: the host's own setting
	Lengths    map[string]string   `json:"lengths,omitempty"`   // what was chosen for parameters for which the study names the least, by Label with that
	Treatments []Treatment         `json:"treatments"`
	LeftOut    []LeftOut           `json:"left_out,omitempty"`
	Images     map[string]Image    `json:"images"`            // by Label: workload and parameters
	Kernels    map[string]Kernel   `json:"kernels,omitempty"` // those that were named for guests, by Treatment.Kernel

	// Kind names what the study measures, by its key in a study file; empty: the time of its work, or what the work reports of itself.
	// Config is how, in the kind's own type: in study.json it stands under the kind's name. Of a folder that was read it is a
	// [json.RawMessage]; ConfigOf gives either.
	Kind   string `json:"kind,omitempty"`
	Config any    `json:"-"`
}

// Kernel is a file with a kernel that was named for guests.
type Kernel struct {
	File    string `json:"file"`    // as the user named it
	Release string `json:"release"` // as the kernel says it
	Digest  string `json:"digest"`  // "sha256:…" of the file
}

// Name names the kernel among others, by what it says of itself and by its content.
func (k Kernel) Name() string {
	digest := strings.TrimPrefix(k.Digest, "sha256:")
	return k.Release + "@" + digest[:min(len(digest), 12)]
}

// Image is a root filesystem as it was used.
type Image struct {
	Reference string `json:"reference"`       // what the user or the workload asked for
	Digest    string `json:"digest"`          // "sha256:…" of its content
	Base      string `json:"base,omitempty"`  // digest of the image before volumes were copied into it; empty: none were
	Input     string `json:"input,omitempty"` // digest of the workload's own files and of its input
}

// CPU is one logical CPU of the host.
type CPU struct {
	ID     int `json:"id"`
	Core   int `json:"core"`   // physical core, unique in the host; SMT siblings share one
	Socket int `json:"socket"` // physical package
	Node   int `json:"node"`   // NUMA node
}

// Host is the machine as found when the study began.
type Host struct {
	ID             string       `json:"id"` // stable and not personal: a hash of the machine's identity
	Hostname       string       `json:"hostname"`
	Kernel         string       `json:"kernel"`
	OS             string       `json:"os"`
	Arch           string       `json:"arch"`
	CPUModel       string       `json:"cpu_model"`
	CPUFlags       []string     `json:"cpu_flags,omitempty"`
	CPUs           []CPU        `json:"cpus"`                     // online ones
	Memory         int64        `json:"memory"`                   // bytes
	CgroupVersion  string       `json:"cgroup_version"`           // "v1", "v2" or "hybrid"
	Virtualization string       `json:"virtualization,omitempty"` // hypervisor's name when the host is itself a guest
	Governor       string       `json:"governor,omitempty"`
	Settings       *Settings    `json:"settings,omitempty"` // nil in folders from before 2026-11-25
	Capabilities   []Capability `json:"capabilities,omitempty"`
	Idle           *IdleCost    `json:"idle_guests,omitempty"` // nil: not known
}

// IdleCost is what idle guests cost a program that shares their CPUs, as a loop of known work showed it.
type IdleCost struct {
	Time    time.Time `json:"time"`   // of the measurement
	Kernel  string    `json:"kernel"` // of the host then
	Engines []string  `json:"engines"`
	Guests  int       `json:"guests"`
	Ratio   float64   `json:"ratio"` // time of the loop next to the guests over its time while they were stopped
	Low     float64   `json:"low"`   // its 95 % interval
	High    float64   `json:"high"`
}

// Absent is the value of a setting that a host does not have.
const Absent = "none"

// Settings are what the kernel, the firmware and the boot loader have set on a host. Values are the kernel's own, or Absent.
type Settings struct {
	Turbo           string            `json:"turbo"`                 // "on", "off" or Absent
	SMT             string            `json:"smt"`                   // of the kernel's control: "on", "off", "forceoff", "notsupported", "notimplemented" or Absent
	FrequencyDriver string            `json:"frequency_driver"`      // of cpufreq
	Mitigations     map[string]string `json:"mitigations,omitempty"` // the kernel's word on each vulnerability of CPUs that it knows
	Microcode       string            `json:"microcode"`             // revision; several where CPUs differ
	ClockSource     string            `json:"clock_source"`
	HugePages       string            `json:"transparent_huge_pages"` // "always", "madvise", "never" or Absent
	CommandLine     string            `json:"kernel_command_line"`    // values of what may be secret are left out
}

// Answer of a capability probe (design, section 8).
type Answer string

const (
	Supported    Answer = "supported"
	NotSupported Answer = "not supported"
	Inconclusive Answer = "inconclusive"
)

// Capability is one named thing that a host can or cannot do, found by trying it.
type Capability struct {
	Name   string `json:"name"`
	Answer Answer `json:"answer"`
	Why    string `json:"why,omitempty"` // the reason, or for Supported what was seen
	Do     string `json:"do,omitempty"`  // what would make it supported

	Versions map[string]string `json:"versions,omitempty"` // of the engine's programs, by name; nil: not an engine's, or not known
}

// Limits are what the kernel's own files say is in force on a guest.
type Limits struct {
	CPUs   string  `json:"cpus,omitempty"`   // list of CPUs it may use, "0-1"
	Quota  float64 `json:"quota,omitempty"`  // cores' worth of time it may use; 0: no quota
	Memory int64   `json:"memory,omitempty"` // bytes; 0: no limit
	Source string  `json:"source,omitempty"` // where this was read: "cgroup v1", "cgroup v2", "qemu", "affinity"
}

// Guest is one live instance of a platform, provisioned for a treatment.
type Guest struct {
	ID           string     `json:"id"` // unique in the folder
	Treatment    string     `json:"treatment"`
	Round        int        `json:"round"`
	Start        time.Time  `json:"start"`
	Trials       int        `json:"trials,omitempty"`   // measured ones that it was made for; 0 in folders from before: Design.Trials
	Together     int        `json:"together,omitempty"` // guests that were alive at the same time, this one included, and did their trials in random turns; 0: it was the only one
	ProvisionS   float64    `json:"provision_s"`        // seconds from asking for it until its ruler answered
	Limits       Limits     `json:"limits"`
	Kernel       string     `json:"kernel,omitempty"`        // of the guest
	KernelSource string     `json:"kernel_source,omitempty"` // vm: where the kernel was taken from
	Machine      Machine    `json:"machine,omitzero"`        // vm, vmcn: the machine in force; zero in folders from before 2026-11-22, when flushes did not reach the host's disk
	RulerCostS   float64    `json:"ruler_cost_s"`            // seconds: the ruler's median for an empty process
	RulerCostN   int        `json:"ruler_cost_n"`            // number of processes in this median
	RoundTripS   float64    `json:"round_trip_s"`            // seconds: the shortest for an empty order, host to ruler and back
	ReadyS       float64    `json:"ready_s,omitempty"`       // seconds from its service's start until it answered
	NoFlush      bool       `json:"no_flush,omitempty"`      // its synced writes do not reach the host's disk; older folders say it in gVisor's notes
	Notes        []*Message `json:"notes,omitempty"`         // what could not be made the same as on bm
}

// Usage is what the kernel says a trial's processes used.
type Usage struct {
	UserS   float64 `json:"user_s"`
	SystemS float64 `json:"system_s"`
	MaxRSS  int64   `json:"max_rss"` // bytes, of the largest process; at least some 20 MB in folders from before the ruler was a program of its own
	MinFlt  int64   `json:"minflt"`
	MajFlt  int64   `json:"majflt"`
	VCSw    int64   `json:"vcsw"`  // voluntary context switches
	IVCSw   int64   `json:"ivcsw"` // involuntary ones

	LeftS float64 `json:"left_s,omitempty"` // CPU time of processes that lived on after the work and were then killed; in none of the others
}

// Confined is the kernel's evidence that a trial stayed on its guest's CPUs.
type Confined struct {
	CPUs     string   `json:"cpus"`              // CPUs of the guest
	UsedS    float64  `json:"used_s"`            // CPU time that the kernel counted for the guest's cgroup, including its ruler's
	ForeignS *float64 `json:"foreign_s"`         // the part of it on other CPUs; nil: not known
	Deduced  bool     `json:"deduced,omitempty"` // ForeignS was not counted: the kernel held the guest's cgroup to its CPUs, and nothing left the cgroup
	Why      *Message `json:"why,omitempty"`     // why ForeignS is not known
	Escape   Escape   `json:"escape,omitempty"`  // how the guest escaped from its CPUs: the trial has failed; empty: it did not
}

// Escape is how a guest escaped from its CPUs.
type Escape string

// The ways to escape.
const (
	EscapeSet     Escape = "cpu-set"      // its CPU set was changed or removed
	EscapeLeft    Escape = "left"         // a process left its cgroup
	EscapeForeign Escape = "foreign"      // it used other CPUs
	EscapeTime    Escape = "too-much"     // too much CPU time: more than its CPUs have in the time that passed
	EscapeUnseen  Escape = "not-provable" // not known: it could have left
)

// Load is what applied a trial's load to the guest's service, from outside the guest.
type Load struct {
	From    string  `json:"from,omitempty"`   // the machine that it ran on, ssh://…; empty: the host
	CPUs    []int   `json:"cpus"`             // of that machine, that it could use
	Shared  bool    `json:"shared,omitempty"` // the guest could use some of them too
	UserS   float64 `json:"user_s"`
	SystemS float64 `json:"system_s"`

	// How far that machine's calendar clock was ahead of the host's when the trial began, in seconds, and how wrong that may be.
	AheadS      float64 `json:"ahead_s,omitempty"`
	AheadBoundS float64 `json:"ahead_bound_s,omitempty"`
}

// Trial is one execution of a workload in a guest. Nothing is dropped: a failed one has its cause.
type Trial struct {
	Treatment  string             `json:"treatment"`
	Round      int                `json:"round"`
	Guest      string             `json:"guest"`
	Index      int                `json:"trial"` // in its round, from 0; warm-ups are counted separately
	Warmup     bool               `json:"warmup,omitempty"`
	Traced     bool               `json:"explained,omitempty"` // a traced trial: no ratio uses it, and it is counted separately
	Start      time.Time          `json:"start"`
	Command    []string           `json:"command,omitempty"`
	Value      float64            `json:"value"`             // the workload's metric; meaningless when Failure is set
	ElapsedS   float64            `json:"elapsed_s"`         // by the ruler's clock, inside the guest
	HostS      float64            `json:"host_s"`            // the same interval by the host's clock, and the way to the ruler and back with it (about Guest.RoundTripS); folders from before that have it taken off
	Failure    *Message           `json:"failure,omitempty"` // nil: it succeeded
	Exit       int                `json:"exit"`
	Signal     string             `json:"signal,omitempty"`
	Usage      Usage              `json:"usage"`             // of the work; a service's is not known by trial
	Figures    map[string]float64 `json:"figures,omitempty"` // secondary metrics, by the name in Study.Also
	Load       *Load              `json:"load,omitempty"`
	Output     string             `json:"output,omitempty"` // bounded tail of what it printed; only where it failed
	Warnings   []*Message         `json:"warnings,omitempty"`
	Found      *Found             `json:"found,omitempty"`       // nil: nothing, or it was not looked for
	Trace      *Trace             `json:"probes,omitempty"`      // what the tracers saw
	Beside     *Beside            `json:"beside,omitempty"`      // nil: not known, as in folders from before it was recorded
	ThrottledS float64            `json:"throttled_s,omitempty"` // for so long its guest's CPU quota held it back, added over CPUs
	Neighbours *NeighbourActivity `json:"company,omitempty"`     // what its guest's neighbours did; nil: it had none
	Confined   *Confined          `json:"confined,omitempty"`    // nil: its guest is not held to CPUs, or nobody looked, as in folders from before it was recorded

	// Seen is what the kind of study recorded besides, in the kind's own type: an object, whose keys stand next to the others in
	// trials.jsonl. Of a folder that was read it is a [json.RawMessage]; SeenOf gives either. nil: nothing.
	Seen any `json:"-"`
}

// Found is what a trial found of earlier trials in the same guest: files that they had made, and that it left as they were and made no others like them.
type Found struct {
	Files []string `json:"files"` // the first of them, by path
	N     int      `json:"n"`
}

// MostFound is how many files a Found names.
const MostFound = 3

// Beside is what the host's CPUs did in addition to the guest during a trial, in seconds of them all together, as its kernel counts: in hundredths.
type Beside struct {
	StolenS float64 `json:"stolen_s"` // the machine below the host had given them to others, while something was ready to run
	OthersS float64 `json:"others_s"` // they ran what was not of the guest, nor of its load: other programs, and the kernel itself
	OfS     float64 `json:"of_s"`     // in all, idle time too
}

// Add adds what is known.
func (b *Beside) Add(o *Beside) {
	if o != nil {
		b.StolenS, b.OthersS, b.OfS = b.StolenS+o.StolenS, b.OthersS+o.OthersS, b.OfS+o.OfS
	}
}

// Measured says whether the trial counts for the treatment's mean and ratio, if it succeeded: warm-ups and traced ones do
// not.
func (t *Trial) Measured() bool { return !t.Warmup && !t.Traced }

// Session is one line of sessions.jsonl: a `tare run` began or ended.
type Session struct {
	Time   time.Time  `json:"time"`
	Event  string     `json:"event"`            // "start" or "end"
	Reason *Message   `json:"reason,omitempty"` // of an end
	Args   []string   `json:"args,omitempty"`
	Notes  []*Message `json:"notes,omitempty"`
	Quiet  []Setting  `json:"quiet,omitempty"` // of a start: what was set on the host for as long as it ran
}

// endsBefore are the reasons for an end, by their texts in folders of the first format.
var endsBefore = map[string]*Message{
	"precise enough": Say("precise-enough"), "cap on rounds": Say("cap-on-rounds"), "time budget": Say("time-budget"), "interrupted": Say("interrupted"),
}

// coded replaces the text of a reason, from a folder of the first format, with its code.
func (s *Session) coded() {
	text := s.Reason.Text()
	if m := endsBefore[text]; m != nil {
		s.Reason = m
	} else if cause, failed := strings.CutPrefix(text, "failed: "); failed {
		s.Reason = Say("failed", "cause", cause)
	}
}

// Setting is one file of the host's kernel in which something was set for a session, to make the host quieter.
type Setting struct {
	Name string `json:"name"` // "address randomisation"
	File string `json:"file"`
	From string `json:"from"`
	To   string `json:"to"`
}
