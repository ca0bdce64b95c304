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
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tare/notebook"
	"tare/notebook/durable"
)

// Scheduler starts tasks on nodes and ends them.
type Scheduler interface {
	// Nodes are all nodes that the scheduler has for the fleet, each with the reason if it cannot be used.
	Nodes(ctx context.Context) ([]Node, error)
	// Start starts the task of a node; dir is the fleet's folder, an absolute path.
	Start(ctx context.Context, dir string, f *notebook.Fleet, node string) error
	// Plan is what Start would do, for people to read.
	Plan(dir string, f *notebook.Fleet, node string) string
	// Jobs are the tasks of the fleet that have not ended, by node.
	Jobs(ctx context.Context, f *notebook.Fleet) (map[string]Job, error)
	// Cancel ends all tasks of the fleet.
	Cancel(ctx context.Context, f *notebook.Fleet) error
}

// Node is a node as a scheduler has it.
type Node struct {
	Name string
	Arch string // as uname -m; empty: not known
	Why  string // why no task can be started there now; empty: one can
}

// Job is a task as a scheduler has it.
type Job struct {
	ID      string
	Running bool   // or ending; otherwise it is still to begin
	Why     string // why it has not begun, in the scheduler's words
}

// arch is this machine's architecture, in uname's words.
var arch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

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
		if !slices.Contains([]string{logsFolder, program, taskScript, StudyFile, "lock"}, e.Name()) && !strings.HasSuffix(e.Name(), durable.PartSuffix) {
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

// StudyFile is the name of the study's file in a fleet's folder.
const StudyFile = "study.yaml"

// Claim takes the lock of a fleet's folder, for the one process that carries results to it. The lock ends when the file is closed. If another process
// has it, durable.HeldError is in the chain of the error.
func Claim(dir string) (*os.File, error) {
	root, err := durable.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := durable.Claim(root, "lock")
	return f, errors.Join(err, root.Close())
}

// commandTime bounds each of the scheduler's commands, and mostSaid what it may print, in bytes.
const (
	commandTime = time.Minute
	mostSaid    = 256 << 20
)

// ask runs a command of the scheduler and returns what it prints on its standard output.
func ask(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("no answer within %v", commandTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	out, said := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not installed here: run this on a machine that can submit jobs", name)
	case err != nil && ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil:
		if text := strings.TrimSpace(said.String()); text != "" {
			return "", fmt.Errorf("%s: %s", name, text)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	case out.over:
		return "", fmt.Errorf("%s printed more than %d bytes", name, mostSaid)
	}
	return out.String(), nil
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
