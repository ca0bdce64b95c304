package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is what Lines needs of an *os.File.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// Lines is a file of lines to be appended to. Its methods may be called from several goroutines.
type Lines struct {
	longest int

	mu     sync.Mutex
	f      File
	size   int64 // up to the end of the last whole line
	broken error // the file could not be cut back to size: nothing more may be appended
}

// NewLines continues a file that is open for reading and writing at the end of its last whole line; what follows it, which
// a kill can leave, is cut off. No line is longer than so many bytes, its end included; a file whose last line is longer is
// an error.
func NewLines(f File, longest int) (*Lines, error) {
	l := &Lines{longest: longest, f: f}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// The last line's end is among the last bytes, or the file is not one of ours.
	tail := make([]byte, min(info.Size(), int64(longest)+1))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return nil, err
	}
	torn := len(tail) - (bytes.LastIndexByte(tail, '\n') + 1) // bytes after the last line's end
	if torn > longest {
		return nil, fmt.Errorf("its last line is longer than %d bytes, which no line of Tare's is", longest)
	}
	l.size = info.Size() - int64(torn)
	if torn == 0 {
		return l, nil
	}
	return l, errors.Join(f.Truncate(l.size), f.Sync())
}

// Append appends lines, given without their ends, and returns when they are on the disk, all at once. Where that fails the file
// is as it was.
func (l *Lines) Append(lines ...[]byte) error {
	var text []byte
	for _, line := range lines {
		if len(line) >= l.longest {
			return fmt.Errorf("%s: a record of %d bytes is longer than a line may be (%d)", l.f.Name(), len(line), l.longest)
		}
		text = append(append(text, line...), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	_, err := l.f.WriteAt(text, l.size)
	if err == nil {
		err = l.f.Sync()
	}
	if err == nil {
		l.size += int64(len(text))
		return nil
	}
	what := errors.New("cannot write the record")
	if isFull(err) {
		what = errors.New("no space is left for the record; free some and run the same command again")
	}
	err = fmt.Errorf("%s: %v (what was written before is whole): %w", l.f.Name(), what, err)
	if cut := errors.Join(l.f.Truncate(l.size), l.f.Sync()); cut != nil {
		err = fmt.Errorf("%w; and its torn end could not be cut off: %w", err, cut)
		l.broken = err
	}
	return err
}

// Close closes the file. Everything is on the disk already.
func (l *Lines) Close() error { return l.f.Close() }
