//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tare/lab/ruler/empty"
)

// scratch is the folder that a trial may write to. What a trial leaves there is not trusted.
type scratch struct {
	path     string
	mode     os.FileMode // permissions, set-id and sticky bits, as they were at the start
	uid, gid int
}

// openScratch notes what the folder is like. A guest without one can serve all orders but those that need it.
func openScratch(path string) (scratch, error) {
	s := scratch{path: orElse(path, ScratchDir)}
	var st unix.Stat_t
	switch err := unix.Stat(s.path, &st); {
	case errors.Is(err, unix.ENOENT):
		return s, nil // said when it is needed
	case err != nil:
		return s, fmt.Errorf("the scratch folder %s: %w", s.path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return s, fmt.Errorf("the scratch folder %s is not a folder", s.path)
	}
	s.mode, s.uid, s.gid = os.FileMode(st.Mode&0o7777), int(st.Uid), int(st.Gid)
	return s, nil
}

// empty removes everything in the folder and gives the folder its first mode and owner back. It follows no symbolic
// link and enters no mount. Stopped ends it early. No process of a trial is alive meanwhile.
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
	if s.mode != 0 { // it was there at the start
		if err := unix.Fchown(fd, s.uid, s.gid); err != nil {
			return fmt.Errorf("giving the scratch folder its owner back: %w", err)
		}
		if err := unix.Fchmod(fd, uint32(s.mode)); err != nil {
			return fmt.Errorf("giving the scratch folder its mode back: %w", err)
		}
	}
	return nil
}
