//go:build linux

package fleet

import (
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
	Ended     State = "ended"     // its task has ended, and its results are still on the node
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
	Job    Job       // without a task that has not ended, only the ID of the last one
	Said   string    // the task's error, or why its results cannot be read
	Host   string    // Host.ID; empty: nothing is measured yet
	Name   string    // the host's own name
	Rounds int       // with a run
	Most   int       // rounds that the study may have
	Runs   int
	Killed bool          // Stopped: without a last word
	SameAs string        // an earlier node on the same host; empty: none
	Ahead  time.Duration // what its clock is ahead of this machine's, if that is minutes
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
	s := Status{Node: node, Ahead: readClock(dir, node)}
	s.measured(notebook.NodeResults(dir, node))
	job, active := jobs[node]
	active = active && !job.Ending // its task has said its last word, or was killed
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
	if !active && s.Job.ID == "" {
		s.Job.ID = task.Job // of the one that has ended
	}
	ended := task.State == notebook.TaskDone || task.State == notebook.TaskFailed || task.State == notebook.TaskStopped
	switch {
	case active && !job.Running:
		s.State, s.Since = Queued, time.Time{}
	case active && job.Ended:
		s.State = Ended
	case active && (!said || task.Job != job.ID || ended):
		s.State, s.Since = Starting, time.Time{}
	case !said && jobs == nil: // only the task knows, and it has said nothing
		s.State = Starting
	case !said:
		s.State = Lost
	case task.State == notebook.TaskDone:
		s.State = Done
	case task.State == notebook.TaskFailed:
		s.State = Failed
	case task.State == notebook.TaskStopped:
		s.State = Stopped
	case jobs != nil && !active: // it had no time to say so
		s.State, s.Killed = Stopped, true
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
