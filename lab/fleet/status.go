//go:build linux

package fleet

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"tare/notebook"
)

// State is how far a node is.
type State string

// The states of a node.
const (
	Queued    State = "queued"    // the scheduler has not begun its task
	Starting  State = "starting"  // its task has said nothing yet
	Waiting   State = "waiting"   // another Tare measures on its host
	Measuring State = "measuring" // or prepares to
	Done      State = "done"      // its run ended as the study or a flag says
	Stopped   State = "stopped"   // its task ended before its run did; another one continues the run
	Failed    State = "failed"
	Lost      State = "lost" // its task ended before it said anything, or was never started
)

// Status is how far a node is, and what it has measured.
type Status struct {
	Node   string
	State  State
	Since  time.Time // of a task's own states; zero: not known
	Job    Job       // zero: the scheduler has none
	Said   string    // the task's error, or why its results cannot be read
	Host   string    // Host.ID; empty: nothing is measured yet
	Name   string    // the host's own name
	Rounds int       // with a run
	Most   int       // rounds that the study may have
	Runs   int
	SameAs string // an earlier node on the same host; empty: none
}

// Statuses are the states of a fleet's nodes. jobs are the scheduler's jobs; nil: it was not asked.
func Statuses(dir string, f *notebook.Fleet, jobs map[string]Job) []Status {
	all := make([]Status, len(f.Nodes))
	first := map[string]string{} // node, by host
	for i, node := range f.Nodes {
		s := statusOf(dir, node, jobs)
		if s.Host != "" {
			if other, is := first[s.Host]; is {
				s.SameAs = other
			} else {
				first[s.Host] = node
			}
		}
		all[i] = s
	}
	return all
}

func statusOf(dir, node string, jobs map[string]Job) Status {
	s := Status{Node: node}
	s.measured(notebook.NodeResults(dir, node))
	job, active := jobs[node]
	task, said, err := notebook.ReadTask(dir, node)
	if err != nil {
		s.State, s.Said = Failed, err.Error()
		return s
	}
	if said {
		s.Since = task.Since
		if task.Said != "" {
			s.Said = task.Said
		}
	}
	s.Job = job
	ended := task.State == notebook.TaskDone || task.State == notebook.TaskFailed || task.State == notebook.TaskStopped
	switch {
	case active && !job.Running:
		s.State, s.Since = Queued, time.Time{}
	case active && (!said || task.Job != job.ID || ended):
		s.State, s.Since = Starting, time.Time{}
	case !said:
		s.State = Lost
	case task.State == notebook.TaskDone:
		s.State = Done
	case task.State == notebook.TaskFailed:
		s.State = Failed
	case task.State == notebook.TaskStopped || jobs != nil && !active:
		s.State = Stopped
	case task.State == notebook.TaskWaits:
		s.State = Waiting
	default:
		s.State = Measuring
	}
	return s
}

// measured notes what a results folder holds so far.
func (s *Status) measured(dir string) {
	f, err := notebook.Read(dir)
	if err != nil {
		if notebook.Exists(dir) && !errors.Is(err, fs.ErrNotExist) {
			s.Said = err.Error()
		}
		return
	}
	s.Host, s.Name, s.Most = f.Host.ID, f.Host.Hostname, f.Study.Design.Cap
	seen := map[int]bool{}
	if err := f.Trials(func(t *notebook.Trial) error {
		s.Runs++
		seen[t.Round] = true
		return nil
	}); err != nil {
		s.Said = err.Error()
	}
	s.Rounds = len(seen)
}

// Open says whether a node needs another task to continue its run.
func (s Status) Open() bool {
	switch s.State {
	case Stopped, Failed, Lost:
		return true
	}
	return false
}

// Begin starts a task for each of the nodes, calls tell for each, and returns how many it started.
func Begin(ctx context.Context, with Scheduler, dir string, f *notebook.Fleet, nodes []string, tell func(node string, err error)) (started int) {
	for _, node := range nodes {
		err := ctx.Err()
		if err == nil {
			err = with.Start(ctx, dir, f, node)
		}
		if err == nil {
			started++
		}
		tell(node, err)
		if ctx.Err() != nil {
			break
		}
	}
	return started
}
