package notebook

import "slices"

// What tracers saw of a traced trial (design, section 10). Tare's own: the paper "pinning" took such figures by hand, with cpudist,
// offcputime, iostat and perf (section III-A and Figure 2).

// Names of the tracers, as `tare run --explain=…` takes them. Those of the first tier read what the kernel counts anyway, and follow
// requests to block devices, which are few; those of the second load programs into it that run at each event.
const (
	TracerThreads   = "threads"   // time on a core and in run queues, as the kernel itself counts it for each thread: an account can be made of it
	TracerBandwidth = "bandwidth" // CPU quotas: periods, and those in which the guest was throttled
	TracerCPU       = "cpu"       // user, system, interrupt, steal and guest time
	TracerMemory    = "memory"    // page faults, reclaim, huge pages
	TracerIO        = "io"        // operations and bytes of block devices; packets and bytes of networks

	TracerScheduler  = "scheduler"  // on-CPU and off-CPU time by reason, run queues, switches, migrations: an account of each instant is made of it
	TracerFaults     = "faults"     // page faults by what the memory is, by sampling
	TracerBlock      = "block"      // requests to block devices and their latency
	TracerHypervisor = "hypervisor" // exits of a VM by reason
	TracerAccounting = "accounting" // where the kernel's own time goes, cgroup accounting among it, by sampling
	TracerStacks     = "stacks"     // kernel stacks of waits; expensive, so only where it is asked for by name
)

// DefaultTracers are those of `tare run --explain` without names: the first tier.
var DefaultTracers = []string{TracerThreads, TracerBandwidth, TracerCPU, TracerMemory, TracerIO, TracerBlock}

// DeepTracers are those of `tare run --explain=deep`: the second tier, and of the first what it does not see itself.
var DeepTracers = []string{TracerScheduler, TracerBandwidth, TracerCPU, TracerMemory, TracerIO, TracerFaults, TracerBlock, TracerHypervisor, TracerAccounting}

// TracerNames are all that there are.
var TracerNames = []string{TracerThreads, TracerScheduler, TracerBandwidth, TracerCPU, TracerMemory, TracerIO, TracerFaults, TracerBlock, TracerHypervisor, TracerAccounting, TracerStacks}

// Tiers of an account, by what it is made of. Accounts of Tare before there were two are of the second.
const (
	TierCounters = 1 // the kernel's own counters, before and after: how long, not when
	TierEvents   = 2 // each switch of the guest's threads
)

// Roles that a guest's threads have on the host.
const (
	RoleWork     = "work"     // the workload's own processes
	RoleRuler    = "ruler"    // the ruler, which waits meanwhile; its children are work
	RoleVCPU     = "vcpu"     // QEMU's thread that runs a virtual CPU
	RoleIO       = "io"       // QEMU's I/O threads
	RoleEmulator = "emulator" // all else of QEMU, or of a sandbox's kernel
)

// Keys of Trace.Wall: what the trial's elapsed time went on. At each instant the time is charged to the cores that the guest could
// have used (as many as it had threads that could run, at most its cores): in shares to those that ran and to those for
// which a thread waited. While no thread could run it is charged to what the thread waited for that ended the silence.
// So the sum over all keys is the time from the creation of the trial's process to its end.
const (
	WallUser       = "user"       // it ran its own code
	WallSystem     = "system"     // the kernel ran for it
	WallThrottled  = "throttled"  // a thread could run and the CPU quota was spent
	WallCore       = "core"       // a thread could run and no core was free
	WallBlock      = "block"      // all waited: for a block device
	WallNetwork    = "network"    // all waited: for a socket
	WallFutex      = "futex"      // all waited: for each other (a futex)
	WallSleep      = "sleep"      // all waited: for a time that it asked for
	WallOther      = "other"      // all waited: for anything else (a pipe, a child, …)
	WallHypervisor = "hypervisor" // the guest's kernel believed that it ran, and the host did something else
)

// Walls are the keys of Trace.Wall in the order in which they are shown.
var Walls = []string{WallUser, WallSystem, WallThrottled, WallCore, WallBlock, WallNetwork, WallFutex, WallSleep, WallOther, WallHypervisor}

// Trace is what the tracers saw of one traced trial. Such a trial feeds no ratio: the tracers' own cost is in it.
type Trace struct {
	Looked  []string           `json:"looked"`            // the tracers that were attached
	Missing map[string]string  `json:"missing,omitempty"` // by tracer: why it, or a part of it, was not
	Tier    int                `json:"tier,omitempty"`    // what Wall is made of: Tier…
	Wall    map[string]float64 `json:"wall,omitempty"`    // seconds, by Wall…; absent where nothing was known of run queues
	Figures map[string]float64 `json:"figures,omitempty"` // by TracerMetric.Name
	Spread  []Distribution     `json:"spread,omitempty"`
	Stacks  []Stack            `json:"stacks,omitempty"` // the longest waits by kernel stack, longest first
	Inside  *Trace             `json:"inside,omitempty"` // vm: what the same tracers saw inside the guest
	Lost    int64              `json:"lost,omitempty"`   // events that the tracers had no room or time for
}

// Distribution is how often a quantity had which size.
type Distribution struct {
	Role   string  `json:"role"`             // whose
	What   string  `json:"what"`             // "on-CPU", "run queue", "off-CPU", "block I/O"
	Of     string  `json:"of,omitempty"`     // off-CPU: the reason, one of the Wall keys; block I/O: device and direction, "vda read"
	Unit   string  `json:"unit"`             // "s"; the buckets' unit is a thousand millionth of it
	Counts []int64 `json:"counts,omitempty"` // Counts[i] values were at least 2^i and less than 2^(i+1) nanoseconds; the first from 0, the last without end
	Sum    float64 `json:"sum"`              // of the values, in Unit
}

// What a Distribution is of.
const (
	OnCPU    = "on-CPU"    // how long a thread ran at a time (cpudist)
	OffCPU   = "off-CPU"   // how long it waited, by reason (offcputime)
	RunQueue = "run queue" // how long it could run before it did
	BlockIO  = "block I/O" // from the request's way to the device until its end
)

// Stack is a place in the kernel where threads waited.
type Stack struct {
	Frames  []string `json:"frames"` // innermost first
	Seconds float64  `json:"seconds"`
	Count   int64    `json:"count"`
}

// TracerMetric says what one of Trace.Figures is.
type TracerMetric struct {
	Name   string
	Tracer string
	Unit   string // "1", "s", "B"
	Help   string
}

// TracerMetrics are all that there are. A name may have a role, or a device, before it: "vcpu.switches", "vda.read_bytes".
var TracerMetrics = []TracerMetric{
	{"elapsed_s", TracerScheduler, "s", "from the creation of the trial's process to its end, as the tracer saw it"},
	{"run_s", TracerScheduler, "s", "all threads' time on a core"},
	{"cpus_used", TracerScheduler, "1", "CPUs of the host on which threads ran"},
	{"delay_s", TracerThreads, "s", "all threads' time in run queues, throttled time among it"},
	{"blocked_s", TracerThreads, "s", "all threads' waits for block devices, where kernel.task_delayacct is on"},
	{"switches", TracerScheduler, "1", "times that a thread left its core"},
	{"waits", TracerScheduler, "1", "of these: it had to wait for something"},
	{"preemptions", TracerScheduler, "1", "of these: it could have gone on"},
	{"wakeups", TracerScheduler, "1", "times that a waiting thread could go on"},
	{"migrations", TracerScheduler, "1", "times that a thread was moved to another core"},
	{"cache_migrations", TracerScheduler, "1", "of these: to one with another last-level cache"},
	{"node_migrations", TracerScheduler, "1", "of these: to one of another NUMA node"},
	{"tasks", TracerScheduler, "1", "threads and processes that were created"},
	{"periods", TracerBandwidth, "1", "periods of the CPU quota in which the guest ran"},
	{"throttled_periods", TracerBandwidth, "1", "of these: the quota was spent before the end"},
	{"throttled_s", TracerBandwidth, "s", "time for which run queues were throttled, added over the cores"},
	{"user_s", TracerCPU, "s", "CPU time in the guest's own code"},
	{"system_s", TracerCPU, "s", "CPU time in the kernel for it"},
	{"guest_s", TracerCPU, "s", "CPU time in a VM's code (KVM)"},
	{"interrupt_s", TracerCPU, "s", "interrupts on the guest's CPUs, whoever they were for"},
	{"steal_s", TracerCPU, "s", "time that the hypervisor under this machine took from the guest's CPUs"},
	{"minor_faults", TracerMemory, "1", "page faults that needed no reading"},
	{"major_faults", TracerMemory, "1", "page faults that had to read"},
	{"anonymous_faults", TracerFaults, "1", "page faults in memory without a file; estimated from samples"},
	{"file_faults", TracerFaults, "1", "page faults in a file's memory; estimated from samples"},
	{"reclaimed_pages", TracerMemory, "1", "pages that the kernel took back from the guest"},
	{"huge_faults", TracerMemory, "1", "huge pages given at a fault; of the whole host"},
	{"reads", TracerIO, "1", "read requests to the device"},
	{"read_bytes", TracerIO, "B", "bytes that they read"},
	{"writes", TracerIO, "1", "write requests to the device"},
	{"written_bytes", TracerIO, "B", "bytes that they wrote"},
	{"received_packets", TracerIO, "1", "packets that came in"},
	{"received_bytes", TracerIO, "B", "bytes that came in"},
	{"sent_packets", TracerIO, "1", "packets that went out"},
	{"sent_bytes", TracerIO, "B", "bytes that went out"},
	{"exits", TracerHypervisor, "1", "times that a virtual CPU was left; by reason before the name"},
	{"exit_s", TracerHypervisor, "s", "time until it went on; by reason before the name"},
	{"samples", TracerAccounting, "1", "samples of running threads that the following shares are of"},
	{"cgroup_s", TracerAccounting, "s", "kernel time in cgroup accounting and CPU quotas; a lower bound, from samples"},
	{"scheduler_s", TracerAccounting, "s", "kernel time in the scheduler; a lower bound, from samples"},
	{"kernel_s", TracerAccounting, "s", "kernel time in all; estimated from samples"},
}

// Undercounted are the metrics of TracerAccounting that are lower bounds. Its samples are timer interrupts. Scheduling and quota accounting run with
// interrupts off, so no sample falls there.
var Undercounted = []string{"cgroup_s", "scheduler_s"}

// Layers of the isolation ladder between bare metal and a container, from the lowest up (paper "pinning", section VI: the
// announced study of "overhead by isolation level"). Treatment.Isolation names the topmost that is there; all below are too.
var Layers = []string{"cgroup", "quota", LayerCPUSet, "memory", "uts", "ipc", "pid", "mount", "network", "seccomp", "capabilities", "overlay", "bridge"}

// Rungs are those of Layers that a study can ask for. The CPU set is none of them any more: bare metal and every rung have it, since affinity alone
// keeps no program on its CPUs. Folders from before have that rung, and below it guests that were bound by affinity.
var Rungs = slices.DeleteFunc(slices.Clone(Layers), func(l string) bool { return l == LayerCPUSet })

// LayerCPUSet is the one of Layers that is none of Rungs.
const LayerCPUSet = "cpuset"

// LayersEngine is the engine of Tare's own that puts a container together layer by layer.
const LayersEngine = "layers"

// IsolationFull is the Isolation of an engine's container that has all of the Layers, with quota and CPU set at once: a rung
// above them.
const IsolationFull = "full"
