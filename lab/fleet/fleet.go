//go:build linux

// Package fleet has many nodes measure one study, each into a results folder of its own (notebook.Fleet). It schedules nothing: it starts a task
// for each node with the commands of the existing scheduler, and reports the progress of each.
package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/fleet/kube"
	"tare/lab/proc"
	"tare/notebook"
	"tare/notebook/durable"
)

// Node is a node as a scheduler has it.
type Node struct {
	Name string
	Arch string // as uname -m; empty: not known
	Why  string // why no task can be started there now; empty: one can
}

// Job is a task as a scheduler has it.
type Job struct {
	ID      string
	Running bool   // otherwise it is still to begin
	Ending  bool   // its task has ended, and the scheduler tidies up
	Ended   bool   // what it has measured is still on the node
	Why     string // why it has not begun, in the scheduler's words
}

// unames are architectures in uname's words, by Go's and Kubernetes' words.
var unames = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// arch is this machine's architecture, in uname's words.
var arch = unames[runtime.GOARCH]

// Choose divides the nodes into those that get a task and those that get none, with the reason in Node.Why. Of more than most usable nodes, a random
// sample is chosen, so that the results represent the other nodes too. 0: all.
func Choose(nodes []Node, most int) (chosen, left []Node) {
	for _, n := range nodes {
		if err := notebook.CheckNode(n.Name); n.Why == "" && err != nil {
			n.Why = err.Error()
		}
		if n.Why == "" && n.Arch != "" && n.Arch != arch {
			n.Why = fmt.Sprintf("its architecture is %s, and this Tare is for %s", n.Arch, arch)
		}
		if n.Why != "" {
			left = append(left, n)
			continue
		}
		chosen = append(chosen, n)
	}
	if most > 0 && len(chosen) > most {
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		for _, n := range chosen[most:] {
			n.Why = fmt.Sprintf("not in the random sample of %d", most)
			left = append(left, n)
		}
		chosen = chosen[:most]
	}
	byName := func(a, b Node) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(chosen, byName)
	slices.SortFunc(left, byName)
	return chosen, left
}

const (
	program    = "tare"
	logsFolder = "logs"
	taskScript = "task.sh"
	lockName   = "lock"
)

// Log is the file with what the task of a node prints.
func Log(dir, node string) string { return filepath.Join(dir, logsFolder, node+".txt") }

// Make makes a fleet's folder, an absolute path, with what the tasks need: this program, and the study's file unless source is nil.
func Make(dir string, f *notebook.Fleet, source []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, logsFolder), 0o755); err != nil {
		return fmt.Errorf("cannot make the fleet's folder: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range found {
		if !slices.Contains([]string{logsFolder, program, taskScript, StudyFile, lockName}, e.Name()) && !strings.HasSuffix(e.Name(), durable.PartSuffix) {
			return fmt.Errorf("%s holds %q, but a fleet needs a new or empty folder: name another with --out", dir, e.Name())
		}
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close() // only read: a failing close loses nothing
	err = durable.Replace(filepath.Join(dir, program), 0o755, func(w io.Writer) error {
		_, err := io.Copy(w, self)
		return err
	})
	if err == nil && source != nil {
		err = durable.WriteFile(filepath.Join(dir, StudyFile), source, 0o644)
	}
	if err != nil {
		return err
	}
	return f.Write(dir) // last: if it exists, the folder is complete
}

// Leave removes a fleet's folder from a node, and the folder of all fleets if it was the last one there.
func Leave(dir string) error {
	if filepath.Dir(dir) != kube.Folders {
		return fmt.Errorf("%s is not in %s", dir, kube.Folders)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Remove(kube.Folders); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// StudyFile is the name of the study's file in a fleet's folder.
const StudyFile = "study.yaml"

// Claim takes the lock of a fleet's folder, for the one process that carries results to it. The lock ends when the file is closed. If another process
// has it, durable.HeldError is in the chain of the error.
func Claim(dir string) (*os.File, error) {
	root, err := durable.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := durable.Claim(root, lockName)
	return f, errors.Join(err, root.Close())
}

// Held says whether a process has the lock that Claim takes. It changes nothing in the folder.
func Held(dir string) (bool, error) {
	f, err := durable.OpenToRead(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // which ends the lock
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// commandTime bounds each of the scheduler's commands, and mostSaid what it may print, in bytes.
const (
	commandTime = time.Minute
	mostSaid    = 256 << 20
)

// ask runs a command of the scheduler and returns what it prints on its standard output.
func ask(ctx context.Context, name string, args ...string) (string, error) {
	out, said, err := call(ctx, commandTime, nil, name, args...)
	if said = strings.TrimSpace(said); said != "" && errors.As(err, new(*exec.ExitError)) {
		err = fmt.Errorf("%s: %s", name, strings.TrimPrefix(said, name+": "))
	}
	return out, err
}

// call runs a command for at most limit, and returns what it prints on its standard output and its standard error.
func call(ctx context.Context, limit time.Duration, in io.Reader, name string, args ...string) (out, said string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	printed, errs := &bounded{}, &bounded{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, printed, errs
	cmd.WaitDelay = time.Second
	defer proc.Tie(cmd)() // a terminal's interrupt reaches only Tare
	err = cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", "", fmt.Errorf("%s is not installed here: run this on a machine that can submit jobs", name)
	case err != nil && ctx.Err() != nil:
		return "", "", fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil:
		return "", errs.String(), fmt.Errorf("%s: %w", name, err)
	case printed.over:
		return "", "", fmt.Errorf("%s printed more than %d bytes", name, mostSaid)
	}
	return printed.String(), errs.String(), nil
}

// bounded keeps what is written to it, up to a bound.
type bounded struct {
	bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostSaid {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
