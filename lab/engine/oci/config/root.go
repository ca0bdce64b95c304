//go:build linux

package config

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SameRoot gives a guest's root the owner and the mode of the image's root, where they differ.
func SameRoot(root, image string) error {
	var want, is unix.Stat_t
	if err := unix.Stat(image, &want); err != nil {
		return fmt.Errorf("the image's root: %w", err)
	}
	if err := unix.Stat(root, &is); err != nil {
		return fmt.Errorf("the guest's root: %w", err)
	}
	if is.Uid != want.Uid || is.Gid != want.Gid {
		if err := unix.Chown(root, int(want.Uid), int(want.Gid)); err != nil {
			return fmt.Errorf("the owner of the guest's root: %w", err)
		}
	}
	if is.Mode != want.Mode {
		if err := unix.Chmod(root, want.Mode&^unix.S_IFMT); err != nil {
			return fmt.Errorf("the mode of the guest's root: %w", err)
		}
	}
	return nil
}
