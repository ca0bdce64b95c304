package ruler

import (
	"time"

	"tare/notebook"
)

// ProtocolVersion is the version that both ends must speak.
const ProtocolVersion = 2

// Paths inside every guest, on every platform. Prepared images have these as empty folders.
const (
	WorkDir    = "/.tare/work"    // the workload's files and input, read-only
	SharedDir  = "/.tare/shared"  // a folder of the host that several guests have in common, writable; not all have one
	ScratchDir = "/.tare/scratch" // for what a trial writes; a trial's default folder; emptied before each trial
	RunDir     = "/.tare/run"     // where an engine puts the ruler and its socket

	SystemInit = "/sbin/init" // the first program of a whole system

	Program = RunDir + "/ruler"      // the ruler's program in a container
	Socket  = RunDir + "/ruler.sock" // the socket that it connects to there
)

// LauncherName is the name in /proc of the program that starts a trial's process for the ruler and waits for it.
const LauncherName = "launcher"

// Hello is the ruler's first message.
type Hello struct {
	Version int    `json:"version"`
	PID     int    `json:"pid"` // as the guest sees it
	Kernel  string `json:"kernel"`
	CPUs    []int  `json:"cpus"`   // CPUs that it may run on, by the guest's numbers
	Memory  int64  `json:"memory"` // bytes of the guest's kernel

	// For a guest that is a machine of its own, by its kernel: its CPUs' features, its sockets, the threads of each core, its NUMA
	// nodes. Empty and 0: unknown.
	CPUFlags []string `json:"cpu_flags,omitempty"`
	Sockets  int      `json:"sockets,omitempty"`
	Threads  int      `json:"threads,omitempty"`
	Nodes    int      `json:"nodes,omitempty"`
	Cmdline  string   `json:"cmdline,omitempty"` // its kernel's command line
}

// Order is a command to run and measure.
type Order struct {
	Argv        []string      `json:"argv"` // empty, with Times: the empty program
	Env         []string      `json:"env,omitempty"`
	Dir         string        `json:"dir,omitempty"` // default ScratchDir; made if the guest lacks it
	UID         uint32        `json:"uid,omitempty"`
	GID         uint32        `json:"gid,omitempty"`
	Groups      []uint32      `json:"groups,omitempty"`       // supplementary groups, at most MaxGroups
	Timeout     time.Duration `json:"timeout"`                // then the ruler kills everything that the order started
	OutputLimit int           `json:"output_limit"`           // bytes of stdout and of stderr to keep, from the end
	KeepScratch bool          `json:"keep_scratch,omitempty"` // do not empty ScratchDir first (a check after its trial)
	Times       int           `json:"times,omitempty"`        // number of runs, one immediately after the other, until one fails; 0: once
	Tracers     []string      `json:"probes,omitempty"`       // the notebook.TracerNames that trace inside the guest; only a VM's ruler can do so

	// Remains: look for files that earlier runs with Remains have left in the same guest, and that this one finds.
	Remains bool `json:"remains,omitempty"`

	SmallPages bool `json:"small_pages,omitempty"` // and no transparent huge pages for them (prctl(2), PR_SET_THP_DISABLE)

	Mergeable bool `json:"mergeable,omitempty"` // it asks the kernel to merge its pages with equal ones (prctl(2), PR_SET_MEMORY_MERGE; Linux 6.7)

	// Restorable: its launcher is a file without a name in ScratchDir, not in memory, because CRIU 4.1 restores no program from
	// memory.
	Restorable bool `json:"restorable,omitempty"`

	Bounds Bounds `json:"-"` // called at the trial's bounds, by the host's clock; nil: none
}

// Bounds is called on the host when a trial begins and when it has ended: just before the host sends go, and as soon as the guest's
// answer has come. Either both methods are called or none.
type Bounds interface {
	Begin()
	End()
}

// Begun is a Bounds that is closed when the order's work begins.
type Begun chan struct{}

// Begin implements Bounds.
func (b Begun) Begin() { close(b) }

// End implements Bounds.
func (Begun) End() {}

// Result is the ruler's measurement. If the work could not be started, Error says why and nothing else is valid.
type Result struct {
	Elapsed   time.Duration `json:"elapsed"` // guest's monotonic clock, from before creation to reaping
	Exit      int           `json:"exit"`
	Signal    string        `json:"signal,omitempty"` // name of the signal that ended it, "SIGKILL"
	TimedOut  bool          `json:"timed_out,omitempty"`
	OOMKills  int64         `json:"oom_kills,omitempty"` // processes that the guest's kernel killed for memory during the order
	Stdout    []byte        `json:"stdout,omitempty"`
	Stderr    []byte        `json:"stderr,omitempty"`
	Truncated bool          `json:"truncated,omitempty"`
	Error     string        `json:"error,omitempty"`

	Took []time.Duration `json:"took,omitempty"` // time of each of Order.Times

	Found *notebook.Found `json:"found,omitempty"` // files that earlier runs had left in the guest; nil: none, not requested, or unknown

	notebook.Usage
	Trace *notebook.Trace `json:"probes,omitempty"` // what these tracers saw in the guest
}
