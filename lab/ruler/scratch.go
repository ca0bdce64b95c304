//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tare/lab/ruler/empty"
)

// scratch is the folder that a trial may write to. Its content is not trusted.
type scratch struct {
	path     string
	mode     os.FileMode // permissions, set-id and sticky bits at the start
	uid, gid int
}

// openScratch records the folder's mode and owner. A guest without one can carry out all orders that do not need it.
func openScratch(path string) (scratch, error) {
	s := scratch{path: orElse(path, ScratchDir)}
	var st unix.Stat_t
	switch err := unix.Stat(s.path, &st); {
	case errors.Is(err, unix.ENOENT):
		return s, nil // reported when it is needed
	case err != nil:
		return s, fmt.Errorf("the scratch folder %s: %w", s.path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return s, fmt.Errorf("the scratch folder %s is not a folder", s.path)
	}
	s.mode, s.uid, s.gid = os.FileMode(st.Mode&0o7777), int(st.Uid), int(st.Gid)
	return s, nil
}

// empty removes everything in the folder and restores the folder's first mode and owner. It follows no symbolic link and enters no
// mount. stopped ends it early. No process of a trial is alive during this.
func (s *scratch) empty(stopped <-chan struct{}) error {
	fd, err := empty.Open(unix.AT_FDCWD, s.path, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return fmt.Errorf("the scratch folder %s cannot be opened: %w", s.path, err)
	}
	top := os.NewFile(uintptr(fd), s.path)
	defer top.Close()
	err = empty.Folder(top, func() error {
		select {
		case <-stopped:
			return errors.New("stopped")
		default:
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("the scratch folder cannot be emptied: %w", err)
	}
	if s.mode != 0 { // the folder existed at the start
		if err := unix.Fchown(fd, s.uid, s.gid); err != nil {
			return fmt.Errorf("restoring the scratch folder's owner: %w", err)
		}
		if err := unix.Fchmod(fd, uint32(s.mode)); err != nil {
			return fmt.Errorf("restoring the scratch folder's mode: %w", err)
		}
	}
	return nil
}
