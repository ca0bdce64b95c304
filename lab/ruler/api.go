package ruler

import (
	"time"

	"tare/notebook"
)

// ProtocolVersion is what both ends must speak.
const ProtocolVersion = 2

// Paths inside every guest, whatever the platform. Images are prepared with these as empty folders.
const (
	WorkDir    = "/.tare/work"    // the workload's files and input, read-only
	ScratchDir = "/.tare/scratch" // for what a trial writes; a trial's default folder; emptied before each trial
	RunDir     = "/.tare/run"     // where an engine puts the ruler and its socket

	SystemInit = "/sbin/init" // the first program of a whole system

	Program = RunDir + "/ruler"      // the ruler's program in a container
	Socket  = RunDir + "/ruler.sock" // the socket that it connects to there
)

// LauncherName names, in /proc, the program in memory that starts a trial's process for the ruler and waits for it.
const LauncherName = "launcher"

// Hello is the first thing a ruler says.
type Hello struct {
	Version int    `json:"version"`
	PID     int    `json:"pid"` // as the guest sees itself
	Kernel  string `json:"kernel"`
	CPUs    []int  `json:"cpus"`   // that it may run on, as the guest numbers them
	Memory  int64  `json:"memory"` // bytes that the guest's kernel has

	// Of a guest that is a machine of its own, as its kernel sees it: its CPUs' features, its sockets, the threads of each core, its NUMA
	// nodes. None and 0: it does not say.
	CPUFlags []string `json:"cpu_flags,omitempty"`
	Sockets  int      `json:"sockets,omitempty"`
	Threads  int      `json:"threads,omitempty"`
	Nodes    int      `json:"nodes,omitempty"`
}

// Order is one thing to run and measure.
type Order struct {
	Argv        []string      `json:"argv"` // empty, with Times: the empty program
	Env         []string      `json:"env,omitempty"`
	Dir         string        `json:"dir,omitempty"` // default ScratchDir; made where the guest does not have it
	UID         uint32        `json:"uid,omitempty"`
	GID         uint32        `json:"gid,omitempty"`
	Groups      []uint32      `json:"groups,omitempty"`       // supplementary groups, at most MaxGroups
	Timeout     time.Duration `json:"timeout"`                // then everything the order started is killed
	OutputLimit int           `json:"output_limit"`           // bytes of stdout and of stderr kept, the last ones
	KeepScratch bool          `json:"keep_scratch,omitempty"` // do not empty ScratchDir first (a check after its trial)
	Times       int           `json:"times,omitempty"`        // run it so often, one straight after the other, as long as it succeeds; 0: once
	Tracers     []string      `json:"probes,omitempty"`       // of notebook.TracerNames, that are to trace inside the guest; only a VM's ruler can

	// Remains: look for files that earlier runs with this in the same guest have left, and that this one finds.
	Remains bool `json:"remains,omitempty"`

	FixedAddresses bool `json:"fixed_addresses,omitempty"` // its process's addresses are not random (personality(2), ADDR_NO_RANDOMIZE), nor those of what it starts
	SmallPages     bool `json:"small_pages,omitempty"`     // nor has it transparent huge pages (prctl(2), PR_SET_THP_DISABLE)

	// Restorable: its launcher is a file of ScratchDir, without a name, and not in memory, where CRIU 4.1 restores no program from.
	Restorable bool `json:"restorable,omitempty"`

	Bounds Bounds `json:"-"` // told of the trial's bounds by the host's word; nil: nobody is
}

// Bounds is told on the host when a trial begins and when it has ended: just before the word to go is sent, and as soon as the
// guest's answer has come. Both are called or none is.
type Bounds interface {
	Begin()
	End()
}

// Begun are Bounds that are closed when the order's work begins.
type Begun chan struct{}

// Begin implements Bounds.
func (b Begun) Begin() { close(b) }

// End implements Bounds.
func (Begun) End() {}

// Result is what the ruler measured. Where the work could not be started Error says why and nothing else counts.
type Result struct {
	Elapsed   time.Duration `json:"elapsed"` // guest's monotonic clock, from before creation to reaping
	Exit      int           `json:"exit"`
	Signal    string        `json:"signal,omitempty"` // name of the signal that ended it, "SIGKILL"
	TimedOut  bool          `json:"timed_out,omitempty"`
	OOMKills  int64         `json:"oom_kills,omitempty"` // processes that the guest's kernel killed for memory meanwhile
	Stdout    []byte        `json:"stdout,omitempty"`
	Stderr    []byte        `json:"stderr,omitempty"`
	Truncated bool          `json:"truncated,omitempty"`
	Error     string        `json:"error,omitempty"`

	Took []time.Duration `json:"took,omitempty"` // of each of Order.Times

	Found *notebook.Found `json:"found,omitempty"` // files that earlier runs had left in the guest; nil: none, or it was not asked for, or cannot be told

	notebook.Usage
	Trace *notebook.Trace `json:"probes,omitempty"` // what these tracers saw in the guest
}
