//go:build linux

package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"tare/lab/fleet/kube"
	"tare/lab/proc"
	"tare/notebook"
	"tare/notebook/durable"
)

// Line reaches a node that does not share the fleet's folder.
type Line interface {
	// Run runs a program there as root and returns when it has ended. When ctx is done, it ends the call; the program there notices the end of
	// its standard input.
	Run(ctx context.Context, in io.Reader, out, said io.Writer, args ...string) error
}

const (
	answerTime   = time.Minute // for a node to say what it is, or to remove its folder
	transferTime = 30 * time.Minute
	stopTime     = 3 * time.Minute // for a run that was told to stop
	lastTransfer = 5 * time.Minute // after an interrupt
	firstFetch   = 20 * time.Second
	fetchEvery   = 10 * time.Minute // a transfer uses the node's CPUs
)

// transfers bounds how many nodes send or bring back at the same time.
var transfers = make(chan struct{}, 16)

// There is the fleet's folder on a node that has its own.
func There(f *notebook.Fleet) string { return kube.Folder(f.ID) }

// Carry runs the task of a node over a line: it sends the program and the results so far, lets the task measure, and brings back the
// results every few minutes and at the end. Then it removes what it sent. When ctx is done, the run there stops in order and its results still come back.
func Carry(ctx context.Context, line Line, dir string, f *notebook.Fleet, node string) (err error) {
	c := carrier{line, dir, node, path.Join(There(f), node)} // two nodes may be one machine
	log, err := os.OpenFile(Log(dir, node), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := c.transfer(ctx, func() error { return c.send(ctx, f) }); err != nil {
		fmt.Fprintf(log, "tare: %v\n", err)
		return err
	}
	ran := c.measure(ctx, log)
	// What was measured comes back even after an interrupt.
	limit := transferTime
	if ctx.Err() != nil {
		limit = lastTransfer
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	back := c.transfer(bounded, func() error {
		if err := c.fetch(bounded); err != nil {
			return err
		}
		// A task that has not said its last word may be at work still: the line broke, or it takes long to stop.
		task, said, err := notebook.ReadTask(dir, node)
		if err == nil && (!said || task.State == notebook.TaskWaits || task.State == notebook.TaskMeasures) {
			err = errors.New("its task has not ended")
		}
		if err != nil {
			return err
		}
		if ran != nil && task.State == notebook.TaskFailed {
			ran = errors.New(task.Said)
		}
		return c.remove(bounded)
	})
	if back != nil {
		return errors.Join(ran, fmt.Errorf("the results are still in %s there, and its log is %s: %w", c.there, Log(dir, node), back))
	}
	return ran
}

// transfer does something when few enough other nodes do the like.
func (c carrier) transfer(ctx context.Context, do func() error) error {
	select {
	case transfers <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-transfers }()
	return do()
}

// carrier is a node with its line.
type carrier struct {
	line             Line
	dir, node, there string
}

// send makes the fleet's folder there.
func (c carrier) send(ctx context.Context, f *notebook.Fleet) error {
	said, err := c.ask(ctx, "uname", "-m")
	if err != nil {
		return err
	}
	if is := strings.TrimSpace(said); is != arch {
		return fmt.Errorf("its architecture is %s, and this Tare is for %s", is, arch)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, transferTime, fmt.Errorf("the transfer took more than %v", transferTime))
	defer cancel()
	if err := c.put(ctx, program, "0755"); err != nil {
		return err
	}
	for _, name := range []string{StudyFile, notebook.FleetFile} {
		if err := c.put(ctx, name, "0644"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// An earlier connection may have broken: the results there are at least as new as those here.
	if err := c.fetch(ctx); !errors.Is(err, errNothing) {
		return err
	}
	if err := restored(c.dir, c.node); err != nil {
		return err
	}
	if _, err := os.Stat(notebook.NodeDir(c.dir, c.node)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(Pack(w, c.dir, c.node)) }()
	err = c.call(ctx, r, io.Discard, path.Join(c.there, program), "fleet", "unpack", c.there, c.node)
	return errors.Join(err, r.Close())
}

// has says whether a file or folder is there.
func (c carrier) has(ctx context.Context, name string) (bool, error) {
	said, err := c.ask(ctx, "sh", "-c", `if [ -e "$1" ]; then echo yes; fi`, "sh", name)
	return strings.TrimSpace(said) == "yes", err
}

// put sends a file of the fleet's folder. The folder there is only root's.
func (c carrier) put(ctx context.Context, name, mode string) error {
	f, err := durable.OpenToRead(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	defer f.Close() // only read: a failing close loses nothing
	const script = `set -eu; mkdir -p "$1"; chmod 0700 "$1"; cd "$1"; gunzip >"$2.part"; chmod "$3" "$2.part"; mv "$2.part" "$2"`
	r, w := io.Pipe()
	go func() {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(z, f)
			err = errors.Join(err, z.Close())
		}
		w.CloseWithError(err)
	}()
	err = c.call(ctx, r, io.Discard, "sh", "-c", script, "sh", c.there, name, mode)
	return errors.Join(err, r.Close())
}

// measure runs the task there, and brings back its results now and then.
func (c carrier) measure(ctx context.Context, log io.Writer) error {
	alive, hold, err := os.Pipe() // the task stops when its standard input ends
	if err != nil {
		return err
	}
	defer alive.Close()
	defer hold.Close()
	ended := make(chan error, 1)
	line, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	go func() {
		ended <- c.line.Run(line, alive, log, log, path.Join(c.there, program), "fleet", "task", "--tied", c.there, c.node)
	}()
	tick := time.NewTimer(firstFetch + rand.N(firstFetch)) // many nodes begin at the same time
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			tick.Reset(fetchEvery)
			bounded, cancel := context.WithTimeout(ctx, transferTime)
			err := c.transfer(bounded, func() error { return c.fetch(bounded) })
			cancel()
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(log, "tare: cannot fetch the results so far: %v\n", err)
			}
		case <-ctx.Done():
			hold.Close()
			select {
			case err := <-ended:
				return errors.Join(ctx.Err(), err)
			case <-time.After(stopTime):
				return fmt.Errorf("its task has not ended within %v", stopTime)
			}
		}
	}
}

// errNothing says that there is nothing to bring back.
var errNothing = errors.New("the task there has made no folder")

// fetch brings the node's folder back. If there is none, the error is errNothing.
func (c carrier) fetch(ctx context.Context) error {
	if found, err := c.has(ctx, notebook.NodeDir(c.there, c.node)); err != nil {
		return err
	} else if !found {
		return errNothing
	}
	r, w := io.Pipe()
	said := &proc.Tail{}
	go func() {
		err := c.line.Run(ctx, nil, w, said, path.Join(c.there, program), "fleet", "pack", c.there, c.node)
		w.CloseWithError(because(err, said))
	}()
	return errors.Join(Unpack(r, c.dir, c.node), r.Close())
}

// remove removes the node's folder there, and those above it if they are empty.
func (c carrier) remove(ctx context.Context) error {
	_, err := c.ask(ctx, "sh", "-c", `rm -rf "$1" && { rmdir "$2" "$3" 2>/dev/null || true; }`, "sh", c.there, path.Dir(c.there), kube.Folders)
	return err
}

// ask runs a short program there and returns its output.
func (c carrier) ask(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %v", answerTime))
	defer cancel()
	var out bytes.Buffer
	err := c.call(ctx, nil, &out, args...)
	return out.String(), err
}

// call runs a program there. Its error has what the program said.
func (c carrier) call(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	said := &proc.Tail{}
	err := c.line.Run(ctx, in, out, said, args...)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return because(err, said)
}

// because is an error with what was said about it.
func because(err error, said *proc.Tail) error {
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		return errors.New(text)
	}
	return err
}
