package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxBytes is the greatest length of a file that people write. Only an accident or an attack comes near it.
const MaxBytes = 1 << 20

// maxKeys is the greatest number of keys in a mapping. The decoder compares every key with every other, so more would take too long.
const maxKeys = 1000

// Read reads a file that a user names: a regular file of at most MaxBytes. It neither waits for nor reads any other kind of file. Errors
// name the path, as those of [os.ReadFile] do.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a FIFO would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path, MaxBytes)
}

// ReadFS reads a file of a folder in the same way. most is the greatest length in bytes.
func ReadFS(folder fs.FS, name string, most int64) ([]byte, error) {
	if info, err := fs.Stat(folder, name); err != nil {
		return nil, err
	} else if err := regular(info, name); err != nil {
		return nil, err
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, name, most)
}

func regular(info fs.FileInfo, path string) error {
	switch {
	case info.IsDir():
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	return nil
}

func read(f fs.File, path string, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := regular(info, path); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is longer than %d bytes", most)}
	}
	return text, err
}
