//go:build linux

package host

import (
	"context"
	"errors"
)

// Kinds of change that Recover itself can undo. Others are undone by functions given to Recover.
const (
	KindDir     = "dir"     // a folder that Tare made: removed with all in it, never across a mount
	KindMount   = "mount"   // a mount point: unmounted
	KindProcess = "process" // a process by pid and start time: killed, and waited for
	KindCgroup  = "cgroup"  // a cgroup folder: its processes killed, then removed with its children
)

// Entry is one change, written before it is made.
type Entry struct {
	Kind   string            `json:"kind"`
	Target string            `json:"target"` // path, "PID START", engine's id
	Detail map[string]string `json:"detail,omitempty"`
}

// Undo takes one change back. It succeeds when the change is not there (any more).
type Undo func(ctx context.Context, e Entry) error

// Journal is this process's list of changes not yet undone, kept on disk (promise 3).
type Journal struct {
}

var errNotYet = errors.New("host: not written yet")

func OpenJournal(stateDir string) (*Journal, error) { return nil, errNotYet }

func (j *Journal) Record(e Entry) (id int, err error) { return 0, errNotYet }

func (j *Journal) Done(id int) error { return errNotYet }

func (j *Journal) Close() error { return errNotYet }

func Recover(ctx context.Context, stateDir string, undo map[string]Undo) (undone []Entry, err error) {
	return nil, errNotYet
}

// ProcessEntry is the entry of a living process.
func ProcessEntry(pid int) (Entry, error)                                 { return Entry{}, errNotYet }
func RemoveDir(ctx context.Context, stateDir, path string) error          { return errNotYet }
func Unmount(ctx context.Context, target string) (note string, err error) { return "", errNotYet }
func KillProcess(ctx context.Context, target string) error                { return errNotYet }
func RemoveCgroup(ctx context.Context, path string) error                 { return errNotYet }
