//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/notebook"
)

var _ engine.Saver = (*Guest)(nil)

const (
	stateName = "state"          // name of the file with a saved machine, in the guest's folder
	stateFD   = "state"          // QEMU's name for it
	savePause = time.Millisecond // pause between two questions whether QEMU has saved, or restored, the machine
	saveSpeed = int64(1) << 40   // bytes a second; QEMU's default is for a network of 1 Gbit/s
)

// mapped tells QEMU that the memory is in files, so that a stream of the machine's state has none of it.
func (q *qmp) mapped(ctx context.Context) error {
	type capability struct {
		Name string `json:"capability"`
		On   bool   `json:"state"`
	}
	return q.with(ctx, "migrate-set-capabilities", map[string][]capability{"capabilities": {{"x-ignore-shared", true}}}, nil)
}

// Save implements engine.Saver: it migrates the machine to a file, and ends QEMU. The machine's disk stays, and so do the files that are its memory.
func (g *Guest) Save(ctx context.Context) (s engine.Saved, err error) {
	if g.hardware.machine.HugePages > 0 || g.state != "" {
		return s, g.kind.Unsupported("a saved state", "Tare saves no machine with huge pages; it saves any other machine once")
	}
	folder := filepath.Join(g.Folder, savedFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return s, err
	}
	path := filepath.Join(folder, stateName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s, err
	}
	defer f.Close()
	q := g.machine.qmp
	if err := q.run(ctx, "stop", nil); err != nil {
		return s, err
	}
	if err := q.with(ctx, "migrate-set-parameters", map[string]int64{"max-bandwidth": saveSpeed}, nil); err != nil {
		return s, err
	}
	how := notebook.Say("saved-by-qemu")
	if g.hardware.machine.RAMFile {
		how = notebook.Say("saved-by-qemu-mapped")
		if err := q.mapped(ctx); err != nil {
			return s, err
		}
	}
	if err := q.give(ctx, stateFD, f); err != nil {
		return s, err
	}
	if err := q.with(ctx, "migrate", map[string]string{"uri": "fd:" + stateFD}, nil); err != nil {
		return s, err
	}
	if err := q.migrated(ctx); err != nil {
		return s, err
	}
	bytes, err := allocated(folder)
	if err != nil {
		return s, err
	}
	// The new machine gets the old one's end of the ruler's stream, and its tap, so the guest sees no disconnection.
	fds := []**os.File{&g.hardware.ruler}
	numbers := []int{rulerFD}
	if g.onTap {
		fds, numbers = append(fds, &g.hardware.tap), append(numbers, tapFD)
	}
	pidfd, err := unix.PidfdOpen(g.PID, 0)
	if err != nil {
		return s, fmt.Errorf("QEMU's process: %w", err)
	}
	defer unix.Close(pidfd)
	for i, n := range numbers {
		fd, err := unix.PidfdGetfd(pidfd, n, 0)
		if err != nil {
			return s, fmt.Errorf("QEMU's file %d: %w", n, err)
		}
		*fds[i] = os.NewFile(uintptr(fd), fmt.Sprintf("file %d of the saved machine", n))
	}
	conn := g.machine.conn
	g.machine.conn = nil // keep the ruler's stream
	if err := g.machine.kill(ctx); err != nil {
		return s, errors.Join(err, closed(conn, g.hardware.ruler, g.hardware.tap))
	}
	g.machine.conn, g.state = conn, path
	return engine.Saved{Bytes: bytes, How: how, Path: folder}, nil
}

// migrated waits until QEMU has written the machine's state.
func (q *qmp) migrated(ctx context.Context) error {
	var is struct {
		Status string `json:"status"`
		Why    string `json:"error-desc"`
	}
	for is.Status != "completed" {
		if err := q.run(ctx, "query-migrate", &is); err != nil {
			return err
		}
		if is.Status == "failed" || is.Status == "cancelled" {
			return fmt.Errorf("QEMU's migration to a file: %s: %s", is.Status, is.Why)
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("QEMU's migration to a file is %s: %w", is.Status, err)
		}
	}
	return nil
}

// allocated is how many bytes the files of a folder take on the disk: a file that is a guest's memory has holes where the guest never wrote.
func allocated(folder string) (bytes int64, err error) {
	all, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	for _, f := range all {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(folder, f.Name()), &st); err != nil {
			return 0, fmt.Errorf("%s: %w", f.Name(), err)
		}
		bytes += st.Blocks * 512
	}
	return bytes, nil
}

// closed closes all of these that exist.
func closed(conn net.Conn, files ...*os.File) error {
	errs := []error{conn.Close()}
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Restore implements engine.Saver: it starts a new QEMU.
func (g *Guest) Restore(ctx context.Context, m *engine.Moments) error {
	state, err := os.Open(g.state)
	if err != nil {
		return err
	}
	defer state.Close()
	h := g.hardware
	h.state, h.moments = state, nil
	conn := g.machine.conn
	made, err := startMachine(ctx, h)
	if err := errors.Join(h.ruler.Close(), err); err != nil { // the new machine has its own copy
		return err
	}
	if h.tap != nil {
		h.tap.Close()
	}
	g.hardware.ruler, g.hardware.tap = nil, nil
	made.conn = conn
	g.machine, g.PID = made, made.process.PID()
	if err := g.hold(ctx); err != nil {
		return err
	}
	if h.machine.RAMFile {
		if err := made.qmp.mapped(ctx); err != nil {
			return err
		}
		if err := made.qmp.give(ctx, stateFD, state); err != nil {
			return err
		}
		if err := made.qmp.with(ctx, "migrate-incoming", map[string]string{"uri": "fd:" + stateFD}, nil); err != nil {
			return fmt.Errorf("%w: %s", err, made.diagnose(ctx))
		}
	}
	var is struct {
		Status string `json:"status"`
	}
	for {
		if err := made.qmp.run(ctx, "query-status", &is); err != nil {
			return fmt.Errorf("%w: %s", err, made.diagnose(ctx))
		}
		if is.Status != "inmigrate" {
			break
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("QEMU did not read the saved state: %w", err)
		}
	}
	if err := made.qmp.run(ctx, "cont", nil); err != nil {
		return err
	}
	m.Mark(notebook.MomentRestored)
	return nil
}

// pause waits a little, unless ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(savePause):
		return nil
	}
}
