package host

import "context"

// Kinds of change that the journal itself can undo. Others are undone by functions given to Recover.
const (
	KindDir     = "dir"     // a folder that Tare made: removed with all in it, never across a mount
	KindMount   = "mount"   // a mount point: unmounted
	KindProcess = "process" // a process by pid and start time: killed, and waited for
	KindCgroup  = "cgroup"  // a cgroup folder: its processes killed, then removed with its children
)

// Entry is one change, written before it is made.
type Entry struct {
	Kind   string            `json:"kind"`
	Target string            `json:"target"`          // path, "PID START", engine's id
	Detail map[string]string `json:"detail,omitempty"`
}

// Undo takes one change back. It succeeds when the change is not there (any more).
type Undo func(ctx context.Context, e Entry) error

// Journal is this process's list of changes not yet undone, kept on disk (promise 3): each entry is synced before
// Record returns. While the process lives it holds a lock on the file; a journal without a living holder is
// somebody's who died, and Recover undoes it.
type Journal struct {
	// fields are journal's own
	impl
}
