//go:build linux

// Package journal keeps the undo journal of everything that Tare changes on the host, and undoes the changes of dead processes.
package journal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
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
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tare/notebook/durable"
)

// KindProcess is the kind of a process, by its pid and start time (see ProcessEntry and KillProcess).
const KindProcess = "process"

// Entry is one change, written before it is made.
type Entry struct {
	Kind   string            `json:"kind"`
	Target string            `json:"target"` // path, "PID START", engine's id
	Detail map[string]string `json:"detail,omitempty"`

	// State is the state folder of the journal, absolute and without links. The journal sets it for an Undo, and never reads it
	// from a file: an entry must not decide what may be removed.
	State string `json:"-"`
}

// ErrUnreachable is in the error of an Undo that needs a program or service that is missing. In an error of Recover it says that
// nothing else failed.
var ErrUnreachable = errors.New("the program or service that would undo it cannot be reached")

// Undo undoes one change. It succeeds if the change does not exist (any more).
type Undo func(ctx context.Context, e Entry) error

// undoTimeout bounds one undo in Recover, so that one that hangs does not block the others.
const undoTimeout = 30 * time.Second

// journalLimit is the size of the largest journal that is read, in bytes. A real one has some hundred bytes a change.
const journalLimit = 64 << 20

const (
	journalFolder = "journal"
	journalSuffix = ".jsonl"
	journalFormat = 1
)

// Journal is this process's list of changes that are not yet undone, kept on disk (promise 3). Each entry is synced before
// Changes.Announce returns. The process holds a lock on the file while it lives. Recover undoes a journal that nobody holds,
// because its process is dead. The methods may be called from several goroutines.
type Journal struct {
	state string // the folder, without links

	mu    sync.Mutex
	file  *os.File
	lines *durable.Lines // of file; nil once closed
	last  int            // the last id
	open  map[int]Entry
}

// journalLine is a line of a journal. Op is "head" (first line: Format, Boot and PID), "open" (ID and Entry) or "done" (ID).
type journalLine struct {
	Op     string `json:"op"`
	Format int    `json:"format,omitempty"`
	Boot   string `json:"boot,omitempty"` // the kernel's boot id: processes end with the boot
	PID    int    `json:"pid,omitempty"`
	Since  int64  `json:"since,omitempty"` // head: when it was begun, in ns since the host was booted, so that setting the clock does not matter
	ID     int    `json:"id,omitempty"`
	Entry  *Entry `json:"entry,omitempty"`
}

// Open begins this process's journal, a file of its own under stateDir/journal. It makes missing folders. The journal is locked
// until Close or the end of the process.
func Open(stateDir string) (j *Journal, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal: open the undo journal: %w", err)
		}
	}()
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	state, err := filepath.EvalSymlinks(stateDir)
	if err != nil {
		return nil, err
	}
	if state, err = filepath.Abs(state); err != nil {
		return nil, err
	}
	root, err := durable.OpenFolder(state)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := durable.MakeFolderIn(root, journalFolder, 0o700)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
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
		err = writeLines(lines, journalLine{Op: "head", Format: journalFormat, Boot: boot, PID: os.Getpid(), Since: sinceBoot()})
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	return &Journal{state: state, file: file, lines: lines, open: make(map[int]Entry)}, nil
}

// createLocked makes a new journal file and locks it. A Recover elsewhere may see the new file before it is locked, and remove it
// as a dead process's empty journal. Then createLocked makes another.
func createLocked(dir *os.Root) (*os.File, error) {
	for range 100 {
		file, err := durable.OpenFile(dir, fmt.Sprintf("%d-%s%s", os.Getpid(), rand.Text(), journalSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrNotExist) { // a Recover removed it before it was locked
			continue
		}
		if err != nil {
			return nil, err
		}
		ours, err := durable.TryLockNamed(file)
		if ours {
			if err = durable.SyncFolder(dir); err == nil {
				return file, nil
			}
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
		}
		// The Recover that holds its lock removes it.
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: no new file there could be locked in 100 attempts; is something else locking files there?", dir.Name())
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

// record writes changes to the journal before they are made, in order, and returns when they are on the disk. The first one's id is
// for done; the ids of the others follow it.
func (j *Journal) record(entries ...Entry) (id int, err error) {
	for _, e := range entries {
		if e.Kind == "" || e.Target == "" {
			return 0, fmt.Errorf("journal: record %s %q: an entry needs a kind and a target", e.Kind, e.Target)
		}
		if err := writable(e); err != nil {
			return 0, fmt.Errorf("journal: record %s %q: %w", e.Kind, e.Target, err)
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

// writable says why an entry could not be read back unchanged: JSON can only contain UTF-8.
func writable(e Entry) error {
	texts := []string{e.Kind, e.Target}
	for k, v := range e.Detail {
		texts = append(texts, k, v)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8, so that the undo journal cannot name it: rename it", text)
		}
	}
	return nil
}

// done records that the changes with these ids are undone.
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

// Close ends the journal. It removes the file if every change is undone. Otherwise the file stays, Recover will undo its changes,
// and the error names them. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		return nil
	}
	file := j.file
	j.lines = nil
	if len(j.open) == 0 {
		// Remove it while it is locked: a Recover that waits to read it then finds that the file has no name, and skips it.
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

// parseJournal parses a journal: its head and the changes that are still open, in the order of their records. It ignores a last
// line without an end: Announce had not returned, so the change was not made. Any other line that is not a journal's is an error
// that names the line; the readable part is returned with it.
func parseJournal(b []byte) (head journalLine, open []numbered, err error) {
	var errs []error
	at := map[int]int{} // index in all of each open change
	var all []struct {
		numbered
		done bool
	}
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			break
		}
		b = rest
		var l journalLine
		if err := json.Unmarshal(line, &l); err != nil {
			errs = append(errs, fmt.Errorf("line %d: must be one JSON object: %w", n, err))
			continue
		}
		switch {
		case l.Op == "head" && n == 1:
			if l.Format != journalFormat {
				return l, nil, fmt.Errorf("line 1: format %d; must be %d; another version of tare wrote it, and can undo it", l.Format, journalFormat)
			}
			head = l
		case l.Op == "open" && l.Entry != nil:
			if _, before := at[l.ID]; before {
				errs = append(errs, fmt.Errorf("line %d: change %d was recorded before", n, l.ID))
				continue
			}
			at[l.ID] = len(all)
			all = append(all, struct {
				numbered
				done bool
			}{numbered: numbered{l.ID, *l.Entry}})
		case l.Op == "done":
			if i, is := at[l.ID]; is {
				all[i].done = true
				delete(at, l.ID)
			}
		default:
			errs = append(errs, fmt.Errorf("line %d: %.60q is not a line of an undo journal", n, line))
		}
	}
	for _, o := range all {
		if !o.done {
			open = append(open, o.numbered)
		}
	}
	return head, open, errors.Join(errs...)
}

// Recover undoes the open changes of dead processes in the journals under stateDir, newest journal first, each in reverse order. It
// does not touch the journals of living processes, including this one. undo has the function for each kind of change.
//
// From a journal of another boot of the host it undoes only the lasting kinds. Everything else ended with that boot: a setting has
// the new boot's value, and the number of a process, a link or an interrupt belongs to something else.
//
// A change whose undo fails, or whose kind has no function, stays in its journal, and the error names it. Recover undoes the others
// nevertheless, and returns them. ErrUnreachable is in the error if everything that failed needs something that is missing. No undo
// takes longer than half a minute.
func Recover(ctx context.Context, stateDir string, undo map[string]Undo, lasting ...string) (undone []Entry, err error) {
	state, err := filepath.EvalSymlinks(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		state, err = filepath.Abs(state)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: recover: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("journal: recover: %w", err)
	}
	dir, journals, err := journalsIn(state)
	if err != nil {
		return nil, fmt.Errorf("journal: recover: %w", err)
	}
	if dir == nil {
		return nil, nil
	}
	defer dir.Close()
	r := recovery{state: state, boot: boot, undo: undo, lasting: lasting}
	var hard, absent []error
	for _, name := range journals {
		u, err := r.file(ctx, dir, name)
		undone = append(undone, u...)
		if err == nil {
			continue
		}
		unreachable := errors.Is(err, ErrUnreachable)
		err = fmt.Errorf("journal: undo journal %s: %w", filepath.Join(dir.Name(), name), err)
		if unreachable {
			absent = append(absent, err)
		} else {
			hard = append(hard, err)
		}
	}
	return undone, worst(hard, absent)
}

// worst joins errors. ErrUnreachable is in the result only if it is in all of them.
func worst(hard, absent []error) error {
	if len(hard) == 0 {
		return errors.Join(absent...)
	}
	for _, err := range absent {
		hard = append(hard, errors.New(err.Error()))
	}
	return errors.Join(hard...)
}

// sinceBoot is the time since the host was booted, in ns, including time in suspension.
func sinceBoot() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil { // a kernel before 2.6.39: the file's time gives the order
		return 0
	}
	return t.Nano()
}

// begun is the Since of a journal's head; 0 where it has none.
func begun(dir *os.Root, name string) int64 {
	file, err := durable.OpenFile(dir, name, os.O_RDONLY, 0)
	if err != nil {
		return 0 // Recover says why it cannot be read
	}
	defer file.Close()
	head, err := readHead(file)
	if err != nil {
		return 0
	}
	return head.Since
}

// readHead reads only a journal's first line.
func readHead(file io.ReaderAt) (head journalLine, err error) {
	err = json.NewDecoder(io.NewSectionReader(file, 0, 4096)).Decode(&head)
	return head, err
}

// journalsIn opens the folder of journals and returns their names, the newest first. There may be none.
func journalsIn(state string) (dir *os.Root, names []string, err error) {
	root, err := durable.OpenFolder(state)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	dir, err = durable.OpenFolderIn(root, journalFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	files, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	var journals []fs.FileInfo
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), journalSuffix) {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, errors.Join(err, dir.Close())
		}
		journals = append(journals, info)
	}
	since := map[string]int64{}
	for _, info := range journals {
		since[info.Name()] = begun(dir, info.Name())
	}
	// A file's time comes from a clock that may have been set. Journals of versions that did not record when they were begun are
	// older.
	slices.SortStableFunc(journals, func(a, b fs.FileInfo) int {
		return cmp.Or(cmp.Compare(since[b.Name()], since[a.Name()]), b.ModTime().Compare(a.ModTime()))
	})
	for _, info := range journals {
		names = append(names, info.Name())
	}
	return dir, names, nil
}

// lastFork bounds the wait for the lock of a process that has died.
const lastFork = 2 * time.Second

// lockOfDead locks a journal that may be a dead process's, and reports whether it got the lock and the file still has its name. If
// a process was killed while it started another, the child keeps the lock for a moment, until it runs its program; and what Lend lent
// the lock to keeps it until its end. lockOfDead waits for both.
func lockOfDead(ctx context.Context, file *os.File) (bool, error) {
	for deadline := time.Now().Add(lastFork); ; {
		locked, err := durable.TryLockNamed(file)
		if locked || err != nil || time.Now().After(deadline) {
			return locked, err
		}
		if head, err := readHead(file); err != nil || unix.Kill(head.PID, 0) != unix.ESRCH {
			return false, nil // its process lives, or is just writing its first line
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		time.Sleep(retryPause)
	}
}

// recovery is one call of Recover.
type recovery struct {
	state, boot string
	undo        map[string]Undo
	lasting     []string
}

// file undoes the open changes of one journal.
func (r recovery) file(ctx context.Context, dir *os.Root, name string) (undone []Entry, err error) {
	file, err := durable.OpenFile(dir, name, os.O_RDWR, 0)
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
		return nil, fmt.Errorf("it is larger than %d MiB, so tare did not write it; examine it, and remove it by hand", journalLimit>>20)
	}
	head, open, damage := parseJournal(b)
	var hard, absent []error
	if damage != nil {
		hard = append(hard, fmt.Errorf("%w; examine it, undo its changes by hand, and remove it", damage))
	}
	left := len(open)
	lines, err := durable.NewLines(file, journalLimit) // this cuts off a torn last line
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(open) {
		if err := ctx.Err(); err != nil {
			hard = append(hard, fmt.Errorf("%d changes not undone: %w", left, err))
			break
		}
		ended := head.Boot != "" && head.Boot != r.boot && !slices.Contains(r.lasting, e.Kind)
		if !ended {
			err := r.undoOne(ctx, e.Entry)
			if errors.Is(err, ErrUnreachable) {
				absent = append(absent, fmt.Errorf("%s %s: %w", e.Kind, e.Target, err))
				continue
			}
			if err != nil {
				hard = append(hard, fmt.Errorf("%s %s: %w", e.Kind, e.Target, err))
				continue
			}
			undone = append(undone, e.Entry)
		}
		left--
		if err := writeLines(lines, journalLine{Op: "done", ID: e.id}); err != nil {
			// Not fatal, because undoing a change again does nothing. But the user must know.
			hard = append(hard, err)
		}
	}
	if left == 0 && damage == nil {
		if err := dir.Remove(name); err != nil {
			hard = append(hard, err)
		}
	}
	return undone, worst(hard, absent)
}

func (r recovery) undoOne(ctx context.Context, e Entry) error {
	f := r.undo[e.Kind]
	if f == nil {
		return fmt.Errorf("this version of tare cannot undo a change of kind %q; use the version that made it", e.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	e.State = r.state
	if err := f(ctx, e); err != nil {
		return fmt.Errorf("it could not be undone: %w", err)
	}
	return nil
}

// bootID is the kernel's id of the present boot.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("the id of this boot: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
