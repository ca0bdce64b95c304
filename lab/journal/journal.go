//go:build linux

// Package journal keeps the undo journal of everything that Tare changes on the host, and undoes what dead processes
// left.
package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/notebook/durable"
)

// KindProcess is the kind of a process by its pid and start time (see ProcessEntry and KillProcess): the one kind that
// ends with the boot, so that Recover does not undo it when the host was started anew.
const KindProcess = "process"

// Entry is one change, written before it is made.
type Entry struct {
	Kind   string            `json:"kind"`
	Target string            `json:"target"` // path, "PID START", engine's id
	Detail map[string]string `json:"detail,omitempty"`
}

// Undo takes one change back. It succeeds when the change is not there (any more).
type Undo func(ctx context.Context, e Entry) error

// undoTimeout bounds one undo in Recover, so that one that hangs does not keep the others from being tried.
const undoTimeout = 30 * time.Second

// journalLimit is the largest journal that is read, in bytes. A real one has some hundred bytes a change.
const journalLimit = 64 << 20

const (
	journalFolder = "journal"
	journalSuffix = ".jsonl"
	journalFormat = 1
)

// Journal is this process's list of changes not yet undone, kept on disk (promise 3): each entry is synced before
// Changes.Announce returns. While the process lives it holds a lock on the file; a journal without a living holder is
// somebody's who died, and Recover undoes it. Its methods may be called from several goroutines.
type Journal struct {
	mu    sync.Mutex
	file  *os.File
	lines *durable.Lines // of file; nil once closed
	last  int            // id given last
	open  map[int]Entry
}

// journalLine is one line of a journal. Op is "head" (first line: Format, Boot and PID), "open" (ID and Entry)
// or "done" (ID).
type journalLine struct {
	Op     string `json:"op"`
	Format int    `json:"format,omitempty"`
	Boot   string `json:"boot,omitempty"` // the kernel's boot id: processes end with the boot
	PID    int    `json:"pid,omitempty"`
	ID     int    `json:"id,omitempty"`
	Entry  *Entry `json:"entry,omitempty"`
}

// Open begins this process's journal, a file of its own under stateDir/journal. Folders that are missing
// are made. The journal is locked until Close or the end of the process.
func Open(stateDir string) (j *Journal, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal: open the undo journal: %w", err)
		}
	}()
	dir := filepath.Join(stateDir, journalFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	file, err := createLocked(dir)
	if err != nil {
		return nil, err
	}
	lines, err := durable.NewLines(file, journalLimit)
	if err == nil {
		err = writeLines(lines, journalLine{Op: "head", Format: journalFormat, Boot: boot, PID: os.Getpid()})
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	return &Journal{file: file, lines: lines, open: make(map[int]Entry)}, nil
}

// createLocked makes a new journal file and locks it. A Recover elsewhere may see the new file before it is
// locked, take it for a dead process's empty journal and remove it; then another is made.
func createLocked(dir string) (*os.File, error) {
	for range 100 {
		file, err := os.CreateTemp(dir, fmt.Sprintf("%d-*%s", os.Getpid(), journalSuffix))
		if err != nil {
			return nil, err
		}
		ours, err := durable.TryLockNamed(file)
		if ours {
			if err = durable.SyncDir(dir); err == nil {
				return file, nil
			}
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
		}
		// Whoever holds it removes it.
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: no new file there could be locked in 100 attempts; is something else locking files there?", dir)
}

func (j *Journal) append(all ...journalLine) error {
	if j.lines == nil {
		return errors.New("journal: the undo journal is closed")
	}
	if err := writeLines(j.lines, all...); err != nil {
		return fmt.Errorf("journal: write to the undo journal: %w", err)
	}
	return nil
}

func writeLines(lines *durable.Lines, all ...journalLine) error {
	var texts [][]byte
	for _, l := range all {
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		texts = append(texts, b)
	}
	return lines.Append(texts...)
}

// record writes down changes that are about to be made, in their order, and returns when they are on the disk. The first one's id
// is for done, and the others' follow it.
func (j *Journal) record(entries ...Entry) (id int, err error) {
	for _, e := range entries {
		if e.Kind == "" || e.Target == "" {
			return 0, fmt.Errorf("journal: record %s %q: an entry needs a kind and a target", e.Kind, e.Target)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	id = j.last + 1
	var all []journalLine
	for i, e := range entries {
		e.Detail = maps.Clone(e.Detail)
		all = append(all, journalLine{Op: "open", ID: id + i, Entry: &e})
	}
	if err := j.append(all...); err != nil {
		return 0, err
	}
	for _, l := range all {
		j.last, j.open[l.ID] = l.ID, *l.Entry
	}
	return id, nil
}

// done writes down that the changes with these ids are undone.
func (j *Journal) done(ids ...int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []journalLine
	for _, id := range ids {
		if _, ok := j.open[id]; !ok {
			return fmt.Errorf("journal: undo journal: there is no open change %d", id)
		}
		all = append(all, journalLine{Op: "done", ID: id})
	}
	if err := j.append(all...); err != nil {
		return err
	}
	for _, id := range ids {
		delete(j.open, id)
	}
	return nil
}

// Close ends the journal. Its file is removed when every change is undone; otherwise the file stays, Recover will
// undo what it names, and the error names it too. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		return nil
	}
	file := j.file
	j.lines = nil
	if len(j.open) == 0 {
		// Removed while locked: a Recover that waits to read it then finds it without a name and passes by.
		return errors.Join(os.Remove(file.Name()), file.Close())
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(j.open)) {
		names = append(names, j.open[id].Kind+" "+j.open[id].Target)
	}
	return errors.Join(
		fmt.Errorf("journal: not undone yet: %s; the next start of tare, or `tare clean`, will undo it", strings.Join(names, ", ")),
		file.Close())
}

// numbered is an entry with its id in its journal.
type numbered struct {
	id int
	Entry
}

// parseJournal reads a journal's bytes: its head and the changes still open, in the order in which they were
// recorded. A last line that is not ended was never a finished record, so it is passed over: Announce had not
// returned, and the change was not made. Anything else that is not a line of a journal is an error that names the
// line; what could be read is returned with it.
func parseJournal(b []byte) (head journalLine, open []numbered, err error) {
	var errs []error
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			break
		}
		b = rest
		var l journalLine
		if err := json.Unmarshal(line, &l); err != nil {
			errs = append(errs, fmt.Errorf("line %d: expected one JSON object: %w", n, err))
			continue
		}
		switch {
		case l.Op == "head" && n == 1:
			if l.Format != journalFormat {
				return l, nil, fmt.Errorf("line 1: format %d, expected %d; it was written by another version of tare, which can undo it", l.Format, journalFormat)
			}
			head = l
		case l.Op == "open" && l.Entry != nil:
			if slices.ContainsFunc(open, func(o numbered) bool { return o.id == l.ID }) {
				errs = append(errs, fmt.Errorf("line %d: change %d was recorded before", n, l.ID))
				continue
			}
			open = append(open, numbered{l.ID, *l.Entry})
		case l.Op == "done":
			open = slices.DeleteFunc(open, func(o numbered) bool { return o.id == l.ID })
		default:
			errs = append(errs, fmt.Errorf("line %d: %.60q is not a line of an undo journal", n, line))
		}
	}
	return head, open, errors.Join(errs...)
}

// Recover undoes what processes that died left open in the journals under stateDir, newest journal first, each in
// reverse order. Journals whose process lives, this one's included, are left alone. undo has the way to undo each kind of
// change.
//
// A change whose undo fails, or whose kind has no function, stays in its journal and is named by the error; the
// others are undone nevertheless, and returned. No undo takes longer than half a minute.
func Recover(ctx context.Context, stateDir string, undo map[string]Undo) (undone []Entry, err error) {
	dir := filepath.Join(stateDir, journalFolder)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: recover: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("journal: recover: %w", err)
	}
	var journals []fs.FileInfo
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("journal: recover: %w", err)
		}
		if info.Mode().IsRegular() && strings.HasSuffix(f.Name(), journalSuffix) {
			journals = append(journals, info)
		}
	}
	slices.SortStableFunc(journals, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })

	var errs []error
	for _, f := range journals {
		path := filepath.Join(dir, f.Name())
		u, err := recoverFile(ctx, path, boot, undo)
		undone = append(undone, u...)
		if err != nil {
			errs = append(errs, fmt.Errorf("journal: undo journal %s: %w", path, err))
		}
	}
	return undone, errors.Join(errs...)
}

// lastFork bounds the wait for the lock of a process that has died.
const lastFork = 2 * time.Second

// lockOfDead locks a journal that may be a dead process's, and says whether it got it and the file still has its name. A
// process that was killed while it started another leaves the lock, for a moment, with the child that has not yet got to its
// program; that is waited for.
func lockOfDead(ctx context.Context, file *os.File) (bool, error) {
	for deadline := time.Now().Add(lastFork); ; {
		locked, err := durable.TryLockNamed(file)
		if locked || err != nil || time.Now().After(deadline) {
			return locked, err
		}
		var head journalLine
		if json.NewDecoder(io.NewSectionReader(file, 0, 4096)).Decode(&head) != nil || unix.Kill(head.PID, 0) != unix.ESRCH {
			return false, nil // its process lives, or is just writing its first line
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		time.Sleep(retryPause)
	}
}

func recoverFile(ctx context.Context, path, boot string, undo map[string]Undo) (undone []Entry, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if locked, err := lockOfDead(ctx, file); err != nil || !locked {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, journalLimit+1))
	if err != nil {
		return nil, err
	}
	if len(b) > journalLimit {
		return nil, fmt.Errorf("it is larger than %d MiB, so it was not written by tare; examine it, and remove it by hand", journalLimit>>20)
	}
	head, open, damage := parseJournal(b)
	if damage != nil {
		damage = fmt.Errorf("%w; examine it, undo by hand what it names, and remove it", damage)
	}
	errs := []error{damage}
	left := len(open)
	lines, err := durable.NewLines(file, journalLimit) // a torn last line is cut off
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(open) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%d changes not undone: %w", left, err))
			break
		}
		if e.Kind != KindProcess || head.Boot == "" || head.Boot == boot {
			if err := undoOne(ctx, undo, e.Entry); err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", e.Kind, e.Target, err))
				continue
			}
		}
		undone = append(undone, e.Entry)
		left--
		if err := writeLines(lines, journalLine{Op: "done", ID: e.id}); err != nil {
			// Not fatal: what is undone twice is not there the second time. But it must be known.
			errs = append(errs, err)
		}
	}
	if left == 0 && damage == nil {
		errs = append(errs, os.Remove(path))
	}
	return undone, errors.Join(errs...)
}

func undoOne(ctx context.Context, undo map[string]Undo, e Entry) error {
	f := undo[e.Kind]
	if f == nil {
		return fmt.Errorf("this tare does not know how to undo a change of kind %q; use the version that made it", e.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	if err := f(ctx, e); err != nil {
		return fmt.Errorf("it could not be undone: %w", err)
	}
	return nil
}

// bootID is the kernel's name for the time since it was started.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("which boot this is: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
