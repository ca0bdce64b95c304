package notebook

import "time"

// ObservationFormat is the format of an Observation.
const ObservationFormat = 1

// Kinds of ObservedTarget.
const (
	TargetContainer = "container"
	TargetPod       = "pod"
	TargetUnit      = "unit"
	TargetVM        = "vm"
	TargetGroup     = "cgroup"
	TargetProcess   = "process"
)

// WallStolen is a key of an Observation's account in addition to the keys Wall…: a thread had a core that an interrupt, or the machine below
// this one, used.
const WallStolen = "stolen"

// ObservedWalls are the keys of an Observation's account, in the order of reports. Those from WallMemory on are waits of all threads.
var ObservedWalls = []string{WallUser, WallSystem, WallStolen, WallThrottled, WallCore, WallMemory, WallBlock, WallNetwork, WallFutex, WallSleep, WallOther}

// Observation is what was seen of something that runs on the host, whoever started it, for a time (tare observe).
type Observation struct {
	Format  int            `json:"format"`  // ObservationFormat
	At      time.Time      `json:"at"`      // when the observation began
	Seconds float64        `json:"seconds"` // how long
	Target  ObservedTarget `json:"target"`
	Ended   bool           `json:"ended,omitempty"`       // the target ended before the time was over
	Cut     bool           `json:"interrupted,omitempty"` // a user interrupted the observation
	Stopped int            `json:"stopped,omitempty"`     // processes that a signal or a debugger had stopped at the end
	Paused  bool           `json:"paused,omitempty"`      // its cgroup was frozen at the end, as by docker pause

	Tier    int               `json:"tier"`    // TierEvents: from every switch of its threads; TierCounters: from what the kernel counts anyway
	Slices  []ObservedSlice   `json:"slices"`  // parts of the time, as long as each other, in order; the last may be shorter
	Threads []ObservedThreads `json:"threads"` // by their names: those that did most first
	Ahead   []ObservedAhead   `json:"ahead"`   // who had the CPUs while its threads were ready: the longest first

	Figures  map[string]float64 `json:"figures"`         // in the whole time, by TracerMetric.Name
	Waits    map[string]int64   `json:"waits,omitempty"` // how often its threads waited, by reason: WallNetwork, …; absent where only the kernel's counters were read
	Quota    *ObservedQuota     `json:"quota,omitempty"`
	Memory   *ObservedMemory    `json:"memory,omitempty"`
	Platform ObservedPlatform   `json:"platform"`
	Runtimes []ObservedRuntime  `json:"runtimes"`

	Requests *Requests       `json:"requests,omitempty"` // absent if none were seen
	Replay   *ObservedReplay `json:"replay,omitempty"`   // absent if nothing could be predicted; Said has why

	Cost *ObservedCost `json:"cost,omitempty"` // of the observation; absent if no program was loaded into the kernel
	Lost int64         `json:"lost,omitempty"` // events that the programs had no room or time for
	Said []*Message    `json:"notes"`          // what could not be seen, and why
}

// ObservedTarget is what was observed.
type ObservedTarget struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"` // TargetContainer, …
	ID        string `json:"id,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"` // its folder; empty for a process
	Processes int    `json:"processes"`        // at the end
	Threads   int    `json:"threads"`          // at the end
	CPUs      string `json:"cpus"`             // that it may use, "0-1,3"
	HostCPUs  int    `json:"host_cpus"`        // online
}

// ObservedSlice is a part of the time.
type ObservedSlice struct {
	Seconds float64            `json:"seconds"`
	Wall    map[string]float64 `json:"wall"` // seconds, by the keys ObservedWalls; they add up to Seconds
}

// ObservedThreads are threads with the same names, and what they did, in seconds added over them. A thread's seconds add up to the time for
// which it existed.
type ObservedThreads struct {
	Process string             `json:"process"` // the name of their process
	Thread  string             `json:"thread"`  // their own, with * for the number at its end
	Threads int                `json:"threads"` // how many, with those that have ended
	Wall    map[string]float64 `json:"wall"`    // WallUser is all running time
}

// Kinds of ObservedAhead.
const (
	AheadSelf    = "self"    // another thread of the target
	AheadGroup   = "cgroup"  // a cgroup: a container, a unit
	AheadProcess = "process" // a process in no cgroup of its own
	AheadKernel  = "kernel"  // a thread of the kernel
	AheadNobody  = "nobody"  // the CPU was idle, and waking up
	AheadUnknown = "unknown"
)

// ObservedAhead is who had a core while a thread of the target was ready to run there.
type ObservedAhead struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Seconds float64 `json:"seconds"` // added over the target's threads
	Count   int64   `json:"count"`   // how often
}

// ObservedQuota is the CPU quota in force: of the target's cgroup, or of one above.
type ObservedQuota struct {
	Cgroup    string  `json:"cgroup"`
	Version   int     `json:"cgroup_version"` // 1 or 2
	Cores     float64 `json:"cores"`
	NextCores float64 `json:"next_cores,omitempty"` // of the smallest other limit in force, further up; 0: there is none
	PeriodS   float64 `json:"period_s"`
	BurstS    float64 `json:"burst_s"` // that it may save up
	Periods   float64 `json:"periods"` // in which it wanted to run
	Exhausted float64 `json:"exhausted_periods"`
	LimitedS  float64 `json:"throttled_s"` // as the kernel counts it, added over CPUs
}

// ObservedMemory is the memory of the target's cgroup.
type ObservedMemory struct {
	Cgroup   string `json:"cgroup"`
	Limit    int64  `json:"limit"`    // bytes; 0: none
	Used     int64  `json:"used"`     // bytes, at the end, with the page cache
	Files    int64  `json:"files"`    // bytes of Used: page cache, which can be dropped
	AtLimit  int64  `json:"at_limit"` // how often use reached the limit
	Refaults int64  `json:"refaults"` // pages that were taken away and needed again; -1: not counted by this kernel
	Killed   int64  `json:"killed"`   // processes, for want of memory
}

// ObservedPlatform are facts about the target's platform that cost time.
type ObservedPlatform struct {
	Root       string   `json:"root,omitempty"`        // the file system of its root: "overlay", …
	Seccomp    int      `json:"seccomp_filters"`       // of its first process
	HugePages  string   `json:"huge_pages,omitempty"`  // transparent ones, of the host: "always", "madvise", "never"
	LogDriver  string   `json:"log_driver,omitempty"`  // of Docker
	Network    string   `json:"network,omitempty"`     // of Docker: "bridge", "host", …
	PortProxy  []string `json:"port_proxy,omitempty"`  // ports of which docker-proxy forwards connections to localhost
	SharedCore string   `json:"shared_core,omitempty"` // CPUs outside its CPU set that share a core with one inside
}

// Runtimes that are known.
const (
	RuntimeGo    = "Go"
	RuntimeJVM   = "JVM"
	RuntimeNginx = "nginx"
)

// ObservedRuntime is how many CPUs a process of the target uses at most, by its runtime.
type ObservedRuntime struct {
	Process string `json:"process"`
	PID     int    `json:"pid"`
	Runtime string `json:"runtime"` // RuntimeGo, …
	Version string `json:"version,omitempty"`
	CPUs    int    `json:"cpus"` // 0: not known
	By      string `json:"by"`   // what says so: RuntimeBy…

	Limit   float64 `json:"limit,omitempty"`    // the CPU limit in force on the process, in cores; 0: none
	PeriodS float64 `json:"period_s,omitempty"` // its period
}

// What says for how many CPUs a runtime runs.
const (
	RuntimeByVariable = "variable" // an environment variable, GOMAXPROCS
	RuntimeByFlag     = "flag"     // an argument of the command line
	RuntimeByAffinity = "affinity" // the CPUs that it may use: no quota is smaller, or it does not look at the quota
	RuntimeByQuota    = "quota"    // the quota, rounded up
	RuntimeByCount    = "count"    // workers were counted
)

// ObservedCost is the CPU time of the programs that observed, for a part of the time.
type ObservedCost struct {
	Seconds   float64 `json:"seconds"`         // of CPU time
	Runs      int64   `json:"runs"`            // of programs
	Of        float64 `json:"of_seconds"`      // of the clock
	OfRunning float64 `json:"running_seconds"` // of the target's running time in them
}

// ObservedReplay is what a replay of the target's timeline predicts for other limits and CPUs.
type ObservedReplay struct {
	Of      string        `json:"of"`      // what is timed: RequestsServed or RequestsWakes
	N       int           `json:"n"`       // how many
	Seconds float64       `json:"seconds"` // of the timeline, from the beginning of the observation
	Seen    ObservedTimes `json:"seen"`    // as they were measured
	Checked ObservedTimes `json:"checked"` // as the replay has them without any change

	Changes []ObservedChange `json:"changes"`
}

// Keys of Requests in addition to the keys Wall….
const (
	RequestQueued = "queued" // the request had arrived, and the thread that later read it did other work or had not been woken yet
	RequestLoad   = "load"   // the time outside the service: the load, the network, and making the connection
)

// RequestWalls has the keys of Requests, in the order of reports.
var RequestWalls = []string{WallUser, WallThrottled, WallCore, RequestQueued, WallBlock, WallMemory, WallNetwork, WallFutex, WallSleep, WallOther, RequestLoad}

// Kinds of Requests. An ObservedReplay times those of the first kind or of the last.
const (
	RequestsServed = "requests"   // seen at a service's sockets: from when a request reaches one until the kernel has the last byte of the answer
	RequestsTimed  = "operations" // timed by the load, from when it sent a request, or should have, until it had the answer
	RequestsWakes  = "wakes"      // from when a timer or the network wakes a thread until it waits for one of these again
)

// Requests says where the time of requests went. Each account maps keys to mean seconds over the requests. The seconds add up to the mean time of
// these requests. If a thread of the target ended a wait, the wait counts as what that thread did during it. WallUser is all running time.
type Requests struct {
	Of     string             `json:"of,omitempty"` // Requests…; absent: RequestsServed
	N      int                `json:"n"`
	Mean   map[string]float64 `json:"mean"`          // of all
	P50    map[string]float64 `json:"p50"`           // of those from the 45th to the 55th percentile
	P99    map[string]float64 `json:"p99,omitempty"` // of those from the 98.5th to the 99.5th; absent with fewer than 500 requests
	Median float64            `json:"median_s"`
	Tail   float64            `json:"p99_s"`

	// ByAll says that connections carried several requests at a time, so Tare does not know which thread served which. The time in the
	// service is divided as all threads of the service spent it.
	ByAll bool `json:"by_all,omitempty"`
}

// UsualPeriodS is the period of a CPU limit unless somebody sets another one, in seconds.
const UsualPeriodS = 0.1

// ObservedChange is a change of the target's platform, and what is predicted for it.
type ObservedChange struct {
	Limit   float64       `json:"limit"` // cores; 0: no CPU limit
	PeriodS float64       `json:"period_s,omitempty"`
	BurstS  float64       `json:"burst_s,omitempty"`
	CPUs    int           `json:"cpus"` // that it may use
	Times   ObservedTimes `json:"times"`
}

// ObservedTimes are times of requests, and what kept them waiting. ThrottledS and QueuedS of what was measured are absent: the account has them.
type ObservedTimes struct {
	Mean       ObservedTime `json:"mean"`
	P99        ObservedTime `json:"p99"`
	ThrottledS float64      `json:"throttled_s,omitempty"` // CPUs that stood still because of the limit, added over CPUs
	QueuedS    float64      `json:"queued_s,omitempty"`    // threads that were ready without a CPU, and not throttled, added over threads
}

// ObservedTime is a time in seconds with a 95 % interval. The interval is for another period as long as the observed one.
type ObservedTime struct {
	Seconds float64 `json:"seconds"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}
