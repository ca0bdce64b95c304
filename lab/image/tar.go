package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Tar writes the folder as an uncompressed tar stream (PAX), with owners, modes, times to the nanosecond, hard
// and symbolic links, and file capabilities. The same folder gives the same bytes. No link is followed.
func (t *Tree) Tar(w io.Writer) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(w)
	first := map[uint64]string{} // of files with several names
	buf := make([]byte, copyBuffer)
	err = t.walk(func(name string, fi fs.FileInfo) error {
		if err := tarOne(tw, root, t.Dir, name, fi, first, buf); err != nil {
			return fmt.Errorf("%.200q of %s as tar: %w", name, t.Digest, err)
		}
		return nil
	})
	return errors.Join(err, tw.Close())
}

// walk calls visit for the folder and all below it by their names there, folders first, sorted by name. Names are bytes: an image may
// have some that are no UTF-8, which an fs.FS would refuse.
func (t *Tree) walk(visit func(name string, fi fs.FileInfo) error) error {
	return filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(t.Dir, path)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		return visit(name, fi)
	})
}

func tarOne(tw *tar.Writer, root *os.Root, dir, name string, fi fs.FileInfo, first map[uint64]string, buf []byte) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("no owner known")
	}
	target := ""
	if fi.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = root.Readlink(name); err != nil {
			return err
		}
	}
	hdr, err := tar.FileInfoHeader(fi, target)
	if err != nil {
		return err
	}
	hdr.Format = tar.FormatPAX
	hdr.Name = name
	if fi.IsDir() {
		hdr.Name += "/"
	}
	hdr.Uname, hdr.Gname = "", ""                             // the host's names say nothing about the guest
	hdr.AccessTime, hdr.ChangeTime = time.Time{}, time.Time{} // the host's, and new each time
	if fi.Mode().IsRegular() {
		if st.Nlink > 1 {
			if other, ok := first[st.Ino]; ok {
				hdr.Typeflag, hdr.Linkname, hdr.Size = tar.TypeLink, other, 0
				return tw.WriteHeader(hdr)
			}
			first[st.Ino] = name
		}
		value, err := fileCapability(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if value != "" {
			hdr.PAXRecords = map[string]string{xattrPrefix + capability: value}
		}
	}
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{tw}, struct{ io.Reader }{f}, buf)
	if err == nil && n != fi.Size() {
		err = fmt.Errorf("it has %d bytes and had %d: somebody writes in the image store", n, fi.Size())
	}
	return err
}

// fileCapability reads the capabilities of a file, "" where it has none.
func fileCapability(path string) (string, error) {
	buf := make([]byte, 64) // the kernel's vfs_ns_cap_data has 24
	n, err := unix.Lgetxattr(path, capability, buf)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("its capabilities: %w", err)
	}
	return string(buf[:n]), nil
}
