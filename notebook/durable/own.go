package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenFolder opens a folder to write in it. Whatever becomes of its name later, files are found below the opened folder. Root
// writes only into folders of its own: whoever owns a folder, or can write in it, decides where the names in it lead. For the
// same reason root follows no link of somebody else to the folder.
func OpenFolder(dir string) (*os.Root, error) {
	root, err := openFolder(filepath.Clean(dir), os.Geteuid())
	if err != nil {
		return nil, err
	}
	return root, nil
}

// CheckFolder says why OpenFolder would refuse a folder.
func CheckFolder(dir string) error {
	root, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return root.Close()
}

func openFolder(dir string, user int) (*os.Root, error) {
	named, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if owner, _, known := owned(named); known && named.Mode()&fs.ModeSymlink != 0 && user == 0 && owner != 0 {
		return nil, fmt.Errorf("%s is a link of user %d, and root does not follow it: name the folder itself", dir, owner)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = ours(dir, info, user)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// MakeFolderIn opens a folder in an open one, as OpenFolder does, and makes it where it is not there. It follows no link at all.
func MakeFolderIn(root *os.Root, name string, perm os.FileMode) (*os.Root, error) {
	if err := root.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return openFolderIn(root, name, os.Geteuid())
}

// OpenFolderIn is MakeFolderIn for a folder that exists.
func OpenFolderIn(root *os.Root, name string) (*os.Root, error) {
	return openFolderIn(root, name, os.Geteuid())
}

func openFolderIn(root *os.Root, name string, user int) (*os.Root, error) {
	path := filepath.Join(root.Name(), name)
	named, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a link, and Tare writes nothing through links: remove the link", path)
	case !named.IsDir():
		return nil, fmt.Errorf("%s is a file, and Tare needs a folder of this name: remove the file", path)
	}
	inner, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := inner.Stat(".")
	if err == nil && !os.SameFile(named, info) {
		err = fmt.Errorf("%s was replaced while Tare opened it: remove what is there", path)
	}
	if err == nil {
		err = ours(path, info, user)
	}
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return inner, nil
}

// ours says why a user must not write to a file or folder because of others who can. Only root is asked: everybody else can do
// no more than the kernel lets them.
func ours(path string, info fs.FileInfo, user int) error {
	owner, _, known := owned(info)
	if user != 0 || !known {
		return nil
	}
	what := "files"
	if info.IsDir() {
		what = "folders"
	}
	if owner != 0 {
		return fmt.Errorf("%s belongs to user %d, and root writes only to %s of its own", path, owner, what)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (mode %03o), and root writes only to %s of its own", path, mode, what)
	}
	return nil
}

// OpenFile opens a regular file in a folder that OpenFolder opened, to write it. A link, what is not a regular file, a file with
// another name elsewhere and a file of somebody else are refused.
func OpenFile(root *os.Root, name string, flag int, perm os.FileMode) (*os.File, error) {
	return openFile(root, name, flag, perm, os.Geteuid())
}

func openFile(root *os.Root, name string, flag int, perm os.FileMode, user int) (*os.File, error) {
	path := filepath.Join(root.Name(), name)
	// Before it is opened: opening a device can do something, and opening a FIFO can wait for ever.
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file (%v), and Tare writes to nothing else there: remove it", path, info.Mode().Type())
	}
	f, err := root.OpenFile(name, flag|nonBlock, perm)
	if err != nil {
		return nil, err
	}
	if err := checkFile(root, name, f, user); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkFile says why a file that was opened by its name is not one that Tare made there.
func checkFile(root *os.Root, name string, f *os.File, user int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !os.SameFile(info, named) {
		return fmt.Errorf("%s is not a regular file, and Tare writes to nothing else there: remove it", f.Name())
	}
	if _, links, known := owned(info); known && links > 1 {
		return fmt.Errorf("%s has %d names (hard links), so writing to it would change another file: replace it by a copy", f.Name(), links)
	}
	return ours(f.Name(), info, user)
}

// OpenToRead opens a regular file of anybody's to read it, also through links. Another kind of file is refused: opening a FIFO,
// or reading it, can wait for ever.
func OpenToRead(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file (%v), and Tare reads nothing else there", path, info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
