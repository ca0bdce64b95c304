package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxBytes is how long a file that people write may be. None comes near; an accident or an attack does.
const MaxBytes = 1 << 20

// maxKeys is how many keys a mapping may have: the decoder compares each with each.
const maxKeys = 1000

// Read reads a file that a user names: a regular file of at most MaxBytes. No other kind is waited for or read. An error names the path, as [os.ReadFile]'s does.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path, MaxBytes)
}

// ReadFS reads a file of a folder likewise, of at most so many bytes.
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
