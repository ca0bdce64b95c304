package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tare/notebook/durable"
)

// Names of the files in a folder. lockFile is held by the process that writes, and holds its process id.
const (
	studyFile    = "study.json"
	hostFile     = "host.json"
	guestsFile   = "guests.jsonl"
	trialsFile   = "trials.jsonl"
	sessionsFile = "sessions.jsonl"
	lockFile     = "lock"
)

// MaxLine is the longest line, in bytes, that a folder may hold. It bounds what a reader must keep in memory; a
// trial's command and the tail of its output fit many times over.
const MaxLine = 1 << 20

// ErrBusy is in the error of Create and Open where another process writes the folder.
var ErrBusy = errors.New("is being written")

// Writer appends to a folder. It holds the folder's lock until Close. Its methods may be called from several
// goroutines; each returns when its line is on the disk.
type Writer struct {
	lock                     *os.File
	guests, trials, sessions *log
}

// Create makes the folder dir of a study and opens it for writing. The folder must not exist, be empty, or hold what
// a Create left that was killed before it was done. After an error, the folder holds nothing that Open would accept.
func Create(dir string, s Study, h Host) (*Writer, error) {
	s.Version = Version
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("the study cannot be kept in %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the results folder: %w", err)
	}
	root, err := durable.OpenFolder(dir)
	if err != nil {
		return nil, refusedFolder(err)
	}
	w, err := create(root, dir, s, h)
	return w, errors.Join(err, root.Close())
}

// free says whether a folder without a study can become one of results: only Tare's own files may be in it.
func free(dir string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the results folder: %w", err)
	}
	for _, e := range found {
		ours := []string{hostFile, guestsFile, trialsFile, sessionsFile, lockFile}
		if !slices.Contains(ours, e.Name()) && !strings.HasSuffix(e.Name(), durable.PartSuffix) {
			return fmt.Errorf("%s holds %q, which is not Tare's: name an empty or a new folder for the results", dir, e.Name())
		}
	}
	return nil
}

// Admits says, before anything long is done for it, whether a study of this name can be begun in dir or go on there.
func Admits(dir, name string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		if err := durable.CheckFolder(dir); err != nil {
			return refusedFolder(err)
		}
	}
	if Exists(dir) {
		f, err := Read(dir)
		if err == nil && f.Study.Name != name {
			err = fmt.Errorf("%s holds the study %s, not %s: name another folder with --out", dir, f.Study.Name, name)
		}
		return err
	}
	at := filepath.Clean(dir)
	st, err := os.Stat(at)
	if err == nil && st.IsDir() {
		if err := free(dir); err != nil {
			return err
		}
	}
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) { // it is made, with those above it, when there is something to keep
		at = filepath.Dir(at)
		st, err = os.Stat(at)
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR) || err == nil && !st.IsDir():
		return fmt.Errorf("%s is, or is below, a file: name another folder with --out", dir)
	case err == nil:
		err = durable.CheckDir(at)
	}
	if err != nil {
		return fmt.Errorf("the results cannot be kept in %s: %w; name another folder with --out", dir, err)
	}
	return nil
}

func create(root *os.Root, dir string, s Study, h Host) (_ *Writer, err error) {
	// Looked at before it is locked: nothing is made or changed in a folder that is not to become one of results.
	if err := unused(dir); err != nil && !errors.Is(err, errStudy) {
		return nil, err
	}
	w := &Writer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.lock, err = lockFolder(root, dir); err != nil {
		return nil, err
	}
	if err := unused(dir); err != nil { // another Create may have been faster
		return nil, err
	}
	// study.json comes last: where it is, the folder is whole.
	for _, name := range []string{guestsFile, trialsFile, sessionsFile} {
		if err := durable.WriteFileIn(root, name, nil, 0o644); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(root, hostFile, h); err != nil {
		return nil, err
	}
	if err := writeJSON(root, studyFile, s); err != nil {
		return nil, err
	}
	if err := durable.SyncDir(filepath.Dir(filepath.Clean(dir))); err != nil {
		return nil, err
	}
	return w, w.openLogs(root)
}

// refusedFolder says what to do about a folder that durable.OpenFolder refused.
func refusedFolder(err error) error {
	return fmt.Errorf("the results cannot be kept: %w; name a new folder with --out, or make this one root's alone (chown root, chmod go-w)", err)
}

// errStudy is of a folder that holds a study.
var errStudy = errors.New("already holds a study: go on with the same one, or name another folder")

// unused says why a study cannot be begun in a folder.
func unused(dir string) error {
	if Exists(dir) {
		return fmt.Errorf("%s %w", dir, errStudy)
	}
	return free(dir)
}

// Open opens a study's folder to go on writing. A torn last line, which a kill can leave, is cut off. A folder of an earlier format becomes
// one of this format, because it gets records that an earlier Tare cannot read. Open fails if the folder is not a study's, or if another
// process writes it (ErrBusy).
func Open(dir string) (*Writer, error) {
	root, err := durable.OpenFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := Read(dir) // which says what is wrong
		return nil, err
	}
	if err != nil {
		return nil, refusedFolder(err)
	}
	w, err := openWriter(root, dir)
	return w, errors.Join(err, root.Close())
}

func openWriter(root *os.Root, dir string) (*Writer, error) {
	if _, err := Read(dir); err != nil {
		return nil, err
	}
	lock, err := lockFolder(root, dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{lock: lock}
	if err := errors.Join(raise(root, dir), w.openLogs(root)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// raise sets the version of a folder's study to the present one.
func raise(root *os.Root, dir string) error {
	f, err := Read(dir)
	if err != nil || f.Study.Version == Version {
		return err
	}
	f.Study.Version = Version
	return writeJSON(root, studyFile, f.Study)
}

// lockFolder takes the folder's lock, which ends with the process.
func lockFolder(root *os.Root, dir string) (*os.File, error) {
	f, err := durable.Claim(root, lockFile)
	if held := (*durable.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("%s %w by process %s: wait for it, or end it", dir, ErrBusy, held.By)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the results folder: %w", err)
	}
	return f, nil
}

// openLogs opens the files of lines.
func (w *Writer) openLogs(root *os.Root) (err error) {
	if w.guests, err = openLog(root, guestsFile); err != nil {
		return err
	}
	if w.trials, err = openLog(root, trialsFile); err != nil {
		return err
	}
	w.sessions, err = openLog(root, sessionsFile)
	return err
}

// Guest appends one guest.
func (w *Writer) Guest(g Guest) error { return w.guests.append(g) }

// Trial appends one trial.
func (w *Writer) Trial(t Trial) error { return w.trials.append(t) }

// Session appends a start or an end of a run.
func (w *Writer) Session(s Session) error { return w.sessions.append(s) }

// Close gives the folder free. Everything is on the disk already.
func (w *Writer) Close() error {
	var errs []error
	for _, l := range []*log{w.guests, w.trials, w.sessions} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
	}
	return errors.Join(errs...)
}

// log is a file of records, one a line.
type log struct{ *durable.Lines }

// openLog opens a file of lines at the end of its last whole one, cutting off what is torn.
func openLog(root *os.Root, name string) (*log, error) {
	f, err := durable.OpenFile(root, name, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot go on writing: %w", err)
	}
	l, err := durable.NewLines(f, MaxLine)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot go on writing %s: %w", f.Name(), err), f.Close())
	}
	return &log{l}, nil
}

// append writes v as one line and returns when it is on the disk. Where that fails the file is as it was.
func (l *log) append(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("a record cannot be written as JSON: %w", err)
	}
	return l.Append(line)
}

// writeJSON writes v to a file, whole or not at all.
func writeJSON(root *os.Root, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s cannot be written as JSON: %w", filepath.Join(root.Name(), name), err)
	}
	return durable.WriteFileIn(root, name, append(data, '\n'), 0o644)
}
