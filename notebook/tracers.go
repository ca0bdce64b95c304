package notebook

import "slices"

// What tracers observed of a traced trial. The paper "pinning" measured this by hand, with cpudist, offcputime, iostat and perf (section III-A
// and Figure 2).

// Names of the tracers.
const (
	TracerThreads    = "threads"
	TracerScheduler  = "scheduler"
	TracerRequests   = "requests"
	TracerBandwidth  = "bandwidth"
	TracerCPU        = "cpu"
	TracerMemory     = "memory"
	TracerIO         = "io"
	TracerFaults     = "faults"
	TracerBlock      = "block"
	TracerHypervisor = "hypervisor"
	TracerAccounting = "accounting"
	TracerCharges    = "charges"
	TracerInterrupts = "interrupts"
	TracerHardware   = "hardware"
	TracerStacks     = "stacks"
	TracerCalls      = "calls"
)

// Tracer is what both wings know of a tracer. The file of lab/trace that adds a tracer of this name attaches it and reads it.
type Tracer struct {
	Name    string         // the name for `tare run --explain=…`
	Default bool           // `tare run --explain` without names attaches it
	Deep    bool           // `tare run --explain=deep` attaches it
	Metrics []TracerMetric // its part of Trace.Figures: in the order of reports
	After   string         // the metric of another tracer after which reports list Metrics; empty: after those of the tracers before it
}

// TracerMetric describes one of Trace.Figures.
type TracerMetric struct {
	Name       string
	Unit       string // "1", "s", "B"
	LowerBound bool   // the real value is larger than the recorded one
	Tracer     string // the name of its tracer
}

// Tracers are all tracers, in the order in which they are attached and listed. There are two tiers. Those of the first tier read what the
// kernel counts anyway, and follow requests to block devices, which are few. Those of the second tier load programs into the kernel that
// run at each event.
var Tracers = []Tracer{
	// Time on a CPU and in run queues, as the kernel itself counts it for each thread; a time breakdown can be made of it.
	{Name: TracerThreads, Default: true, After: "cpus_used", Metrics: []TracerMetric{
		{Name: "delay_s", Unit: "s"},
		{Name: "blocked_s", Unit: "s"},
	}},
	// Time on and off a CPU by reason, run queues, switches, migrations; the time breakdown of each instant is made of it.
	{Name: TracerScheduler, Deep: true, Metrics: []TracerMetric{
		{Name: "elapsed_s", Unit: "s"},
		{Name: "run_s", Unit: "s"},
		{Name: "cpus_used", Unit: "1"},
		{Name: "switches", Unit: "1"},
		{Name: "waits", Unit: "1"},
		{Name: "preemptions", Unit: "1"},
		{Name: "wakeups", Unit: "1"},
		{Name: "migrations", Unit: "1"},
		{Name: "cache_migrations", Unit: "1"},
		{Name: "node_migrations", Unit: "1"},
		{Name: "tasks", Unit: "1"},
	}},
	// The time of each request to a service, and of each operation of a command that reports such times (Trace.Requests).
	{Name: TracerRequests, Deep: true},
	// CPU quotas: periods, and those in which the guest was throttled.
	{Name: TracerBandwidth, Default: true, Deep: true, Metrics: []TracerMetric{
		{Name: "periods", Unit: "1"},
		{Name: "throttled_periods", Unit: "1"},
		{Name: "throttled_s", Unit: "s"},
	}},
	// User, system, interrupt, steal and guest time.
	{Name: TracerCPU, Default: true, Deep: true, Metrics: []TracerMetric{
		{Name: "user_s", Unit: "s"},
		{Name: "system_s", Unit: "s"},
		{Name: "guest_s", Unit: "s"},
		{Name: "interrupt_s", Unit: "s"},
		{Name: "steal_s", Unit: "s"},
	}},
	// Page faults, reclaim, huge pages.
	{Name: TracerMemory, Default: true, Deep: true, Metrics: []TracerMetric{
		{Name: "minor_faults", Unit: "1"},
		{Name: "major_faults", Unit: "1"},
		{Name: "reclaimed_pages", Unit: "1"},
		{Name: "huge_faults", Unit: "1"},
	}},
	// Operations and bytes of block devices; packets and bytes of networks.
	{Name: TracerIO, Default: true, Deep: true, Metrics: []TracerMetric{
		{Name: "reads", Unit: "1"},
		{Name: "read_bytes", Unit: "B"},
		{Name: "writes", Unit: "1"},
		{Name: "written_bytes", Unit: "B"},
		{Name: "received_packets", Unit: "1"},
		{Name: "received_bytes", Unit: "B"},
		{Name: "sent_packets", Unit: "1"},
		{Name: "sent_bytes", Unit: "B"},
	}},
	// Page faults by what the memory is, by sampling.
	{Name: TracerFaults, Deep: true, After: "major_faults", Metrics: []TracerMetric{
		{Name: "anonymous_faults", Unit: "1"},
		{Name: "file_faults", Unit: "1"},
	}},
	// Requests to block devices and their latency.
	{Name: TracerBlock, Default: true, Deep: true},
	// Exits of a VM by reason.
	{Name: TracerHypervisor, Deep: true, Metrics: []TracerMetric{
		{Name: "exits", Unit: "1"},
		{Name: "exit_s", Unit: "s"},
	}},
	// Where the kernel's own time goes, cgroup accounting included, by sampling.
	{Name: TracerAccounting, Deep: true, Metrics: []TracerMetric{
		// The samples are timer interrupts. Scheduling and quota accounting run with interrupts off, so no sample falls there.
		{Name: "samples", Unit: "1"},
		{Name: "cgroup_s", Unit: "s", LowerBound: true},
		{Name: "scheduler_s", Unit: "s", LowerBound: true},
		{Name: "kernel_s", Unit: "s"},
	}},
	// How often the kernel charged CPU time to cgroups and to their quotas.
	{Name: TracerCharges, Deep: true, Metrics: []TracerMetric{
		{Name: "charges", Unit: "1"},
		{Name: "quota_charges", Unit: "1"},
	}},
	// Interrupts of devices and soft interrupts on the whole host; where the guest's threads were when one woke them.
	{Name: TracerInterrupts, Deep: true, Metrics: []TracerMetric{
		{Name: "interrupts", Unit: "1", LowerBound: true}, // a load on the same host causes none
		{Name: "softirqs", Unit: "1"},
		{Name: "io_wakeups", Unit: "1"},
		{Name: "remote_io_wakeups", Unit: "1"},
		{Name: "far_io_wakeups", Unit: "1"},
	}},
	// The CPU's performance counters, of all of the guest's threads.
	{Name: TracerHardware, Deep: true, Metrics: []TracerMetric{
		{Name: "cycles", Unit: "1"},
		{Name: "instructions", Unit: "1"},
		{Name: "l1d_misses", Unit: "1"},
		{Name: "llc_misses", Unit: "1"},
		{Name: "dtlb_misses", Unit: "1"},
	}},
	// System calls by kind, and the bytes that they moved; expensive for work with many of them, so only on request by name.
	{Name: TracerCalls, Metrics: []TracerMetric{
		{Name: "simple_calls", Unit: "1"},
		{Name: "descriptor_calls", Unit: "1"},
		{Name: "path_calls", Unit: "1"},
		{Name: "open_calls", Unit: "1"},
		{Name: "entry_calls", Unit: "1"},
		{Name: "file_calls", Unit: "1"},
		{Name: "file_bytes", Unit: "B"},
		{Name: "pipe_calls", Unit: "1"},
		{Name: "pipe_bytes", Unit: "B"},
		{Name: "socket_calls", Unit: "1"},
		{Name: "socket_bytes", Unit: "B"},
		{Name: "connection_calls", Unit: "1"},
		{Name: "memory_calls", Unit: "1"},
		{Name: "shared_memory_calls", Unit: "1"},
		{Name: "futex_calls", Unit: "1"},
		{Name: "poll_calls", Unit: "1"},
		{Name: "sleep_calls", Unit: "1"},
		{Name: "process_calls", Unit: "1"},
		{Name: "fork_calls", Unit: "1"},
		{Name: "exec_calls", Unit: "1"},
		{Name: "sync_calls", Unit: "1"},
		{Name: "signal_calls", Unit: "1"},
		{Name: "io_uring_calls", Unit: "1"},
	}},
	// Kernel stacks of waits; expensive, so only on request by name.
	{Name: TracerStacks},
}

var (
	// TracerNames are the names of all tracers.
	TracerNames = tracersThat(func(Tracer) bool { return true })

	// DefaultTracers are those of `tare run --explain` without names.
	DefaultTracers = tracersThat(func(t Tracer) bool { return t.Default })

	// DeepTracers are those of `tare run --explain=deep`: the second tier, and those of the first whose metrics it lacks.
	DeepTracers = tracersThat(func(t Tracer) bool { return t.Deep })

	// TracerMetrics are the metrics of all tracers, in the order of reports. In Trace.Figures a name may have a role or a device before
	// it: "vcpu.switches", "vda.read_bytes".
	TracerMetrics = tracerMetrics()
)

func tracersThat(have func(Tracer) bool) (names []string) {
	for _, t := range Tracers {
		if have(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

func tracerMetrics() (all []TracerMetric) {
	for _, later := range []bool{false, true} { // first the tracers without After, because the metric that After names must have its place
		for _, t := range Tracers {
			if later != (t.After != "") {
				continue
			}
			at := len(all)
			if later {
				at = 1 + slices.IndexFunc(all, func(m TracerMetric) bool { return m.Name == t.After })
			}
			own := slices.Clone(t.Metrics)
			for i := range own {
				own[i].Tracer = t.Name
			}
			all = slices.Insert(all, at, own...)
		}
	}
	return all
}

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
	WallMemory     = "memory"     // all waited: for memory to be made free, or for pages of theirs that had been taken away; only tare observe tells it from WallBlock and WallOther
	WallOther      = "other"      // all waited: for anything else (a pipe, a child, …)
	WallHypervisor = "hypervisor" // the guest's kernel believed that it ran, and the host did something else
)

// Walls are the keys of Trace.Wall in the order in which they are shown.
var Walls = []string{WallUser, WallSystem, WallThrottled, WallCore, WallBlock, WallNetwork, WallFutex, WallSleep, WallOther, WallHypervisor}

// Trace is what the tracers saw of one traced trial. Such a trial feeds no ratio: the tracers' own cost is in it.
type Trace struct {
	Looked  []string            `json:"looked"`            // the tracers that were attached
	Missing map[string]*Message `json:"missing,omitempty"` // by tracer: why it, or a part of it, was not
	Tier    int                 `json:"tier,omitempty"`    // what Wall is made of: Tier…
	Wall    map[string]float64  `json:"wall,omitempty"`    // seconds, by Wall…; absent where nothing was known of run queues
	Figures map[string]float64  `json:"figures,omitempty"` // by TracerMetric.Name
	Spread  []Distribution      `json:"spread,omitempty"`
	Stacks  []Stack             `json:"stacks,omitempty"` // the longest waits by kernel stack, longest first
	Inside  *Trace              `json:"inside,omitempty"` // vm: what the same tracers saw inside the guest

	Requests *Requests `json:"requests,omitempty"` // of a service, or of a command that reports such times
	Lost     int64     `json:"lost,omitempty"`     // events that the tracers had no room or time for
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

// N is how many values it has.
func (d *Distribution) N() (n int64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// What a Distribution is of.
const (
	OnCPU    = "on-CPU"    // how long a thread ran at a time (cpudist)
	OffCPU   = "off-CPU"   // how long it waited, by reason (offcputime)
	RunQueue = "run queue" // how long it waited for a CPU
	BlockIO  = "block I/O" // block device: from issuing a request until its end
)

// Stack is a place in the kernel where threads waited.
type Stack struct {
	Frames  []string `json:"frames"` // innermost first
	Seconds float64  `json:"seconds"`
	Count   int64    `json:"count"`
}
