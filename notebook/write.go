package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
// a Create left that was killed before it was done. On an error nothing of the study is there that Open would accept.
func Create(dir string, s Study, h Host) (*Writer, error) {
	s.Version = Version
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("the study cannot be kept in %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the results folder: %w", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	w, err := create(dir, s, h)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	w.lock = lock
	return w, nil
}

// free says whether a folder without a study can become one of results: nothing but Tare's own may be in it.
func free(dir string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot look into the results folder: %w", err)
	}
	for _, e := range found {
		ours := []string{hostFile, guestsFile, trialsFile, sessionsFile, lockFile}
		if !slices.Contains(ours, e.Name()) && !strings.HasSuffix(e.Name(), partSuffix) {
			return fmt.Errorf("%s holds %q, which is not Tare's: name an empty or a new folder for the results", dir, e.Name())
		}
	}
	return nil
}

// Admits says, before anything long is done for it, whether a study of this name can be begun in dir or go on there.
func Admits(dir, name string) error {
	if Exists(dir) {
		f, err := Read(dir)
		if err == nil && f.Study.Name != name {
			err = fmt.Errorf("%s holds the study %s, not %s: name another folder with --out", dir, f.Study.Name, name)
		}
		return err
	}
	switch st, err := os.Stat(dir); {
	case err == nil && !st.IsDir():
		return fmt.Errorf("%s is not a folder: name another one with --out", dir)
	case err == nil:
		if err := free(dir); err != nil {
			return err
		}
		probe, err := os.CreateTemp(dir, "*"+partSuffix)
		if err != nil {
			return fmt.Errorf("the results cannot be kept there: %w", err)
		}
		return errors.Join(probe.Close(), os.Remove(probe.Name()))
	case errors.Is(err, fs.ErrNotExist):
		parent := filepath.Dir(filepath.Clean(dir))
		if st, err := os.Stat(parent); err == nil && !st.IsDir() {
			return fmt.Errorf("%s is not a folder: name another one with --out", parent)
		}
		return nil // it is made when there is something to keep
	default:
		return fmt.Errorf("the results folder: %w", err)
	}
}

func create(dir string, s Study, h Host) (*Writer, error) {
	if Exists(dir) {
		return nil, fmt.Errorf("%s already holds a study: go on with the same one, or name another folder", dir)
	}
	if err := free(dir); err != nil {
		return nil, err
	}
	// study.json comes last: where it is, the folder is whole.
	for _, name := range []string{guestsFile, trialsFile, sessionsFile} {
		if err := writeWhole(filepath.Join(dir, name), nil); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(filepath.Join(dir, hostFile), h); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(dir, studyFile), s); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil {
		return nil, err
	}
	return openLogs(dir)
}

// Open opens a study's folder to go on writing. A torn last line, which a kill can leave, is cut off. What is not a
// study's folder, and one that another process writes (ErrBusy), is an error.
func Open(dir string) (*Writer, error) {
	if _, err := Read(dir); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	w, err := openLogs(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	w.lock = lock
	return w, nil
}

func openLogs(dir string) (*Writer, error) {
	w := &Writer{}
	for _, l := range []struct {
		to   **log
		name string
	}{{&w.guests, guestsFile}, {&w.trials, trialsFile}, {&w.sessions, sessionsFile}} {
		opened, err := openLog(filepath.Join(dir, l.name))
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		*l.to = opened
	}
	return w, nil
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
			errs = append(errs, l.f.Close())
		}
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
	}
	return errors.Join(errs...)
}

// log is a file of lines.
type log struct {
	mu     sync.Mutex
	f      *os.File
	size   int64 // up to the end of the last whole line
	broken error // the file could not be cut back to size: nothing more may be appended
}

// openLog opens a file of lines at the end of its last whole one, cutting off what is torn.
func openLog(path string) (*log, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot go on writing: %w", err)
	}
	l := &log{f: f}
	if err := l.cutTorn(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot go on writing %s: %w", path, err), f.Close())
	}
	return l, nil
}

func (l *log) cutTorn() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	// Look back for the last line's end. It is in the last MaxLine bytes, or the file is not one of ours.
	tail := make([]byte, min(info.Size(), MaxLine+1))
	if _, err := l.f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	torn := len(tail) - (bytes.LastIndexByte(tail, '\n') + 1) // bytes after the last line's end
	if torn > MaxLine {
		return fmt.Errorf("its last line is longer than %d bytes, which no line of Tare's is", MaxLine)
	}
	l.size = info.Size() - int64(torn)
	if torn == 0 {
		return nil
	}
	if err := l.f.Truncate(l.size); err != nil {
		return err
	}
	return l.f.Sync()
}

// append writes v as one line and returns when it is on the disk. Where that fails the file is as it was.
func (l *log) append(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: a record cannot be written as JSON: %w", l.f.Name(), err)
	}
	if len(line) >= MaxLine {
		return fmt.Errorf("%s: a record of %d bytes is longer than a line may be (%d)", l.f.Name(), len(line), MaxLine)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	_, err = l.f.WriteAt(line, l.size)
	if err == nil {
		err = l.f.Sync()
	}
	if err == nil {
		l.size += int64(len(line))
		return nil
	}
	what := "cannot write the record"
	if errors.Is(err, syscall.ENOSPC) {
		what = "no space is left for the record; free some and run the same command again"
	}
	err = fmt.Errorf("%s: %s (what was written before is whole): %w", l.f.Name(), what, err)
	if cut := errors.Join(l.f.Truncate(l.size), l.f.Sync()); cut != nil {
		err = fmt.Errorf("%w; and its torn end could not be cut off: %w", err, cut)
		l.broken = err
	}
	return err
}

const partSuffix = ".part"

// writeJSON writes v to path, whole or not at all.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s cannot be written as JSON: %w", path, err)
	}
	return writeWhole(path, append(data, '\n'))
}

// writeWhole puts a file in place, whole or not at all, and returns when it and its name are on the disk.
func writeWhole(path string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, err)
			if rm := os.Remove(path + partSuffix); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
				err = errors.Join(err, rm)
			}
		}
	}()
	f, err := os.OpenFile(path+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+partSuffix, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
