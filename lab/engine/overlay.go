//go:build linux

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/engine/oci/config"
)

// Overlay mounts an image at root, an existing folder, with a layer for what the guest writes. The layer is in the guest's folder
// and is removed with it. The error wraps the kernel's.
func Overlay(folder, root, image string) error {
	upper, work := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := config.SameRoot(upper, image); err != nil { // the layer's root is the guest's "/"
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	options := "lowerdir=" + escape.Replace(image) + ",upperdir=" + escape.Replace(upper) + ",workdir=" + escape.Replace(work)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay mount at %s (%s): %w", root, options, err)
	}
	return unix.Mount("", root, "", unix.MS_PRIVATE, "")
}
