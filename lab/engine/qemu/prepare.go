//go:build linux

package qemu

import (
	"context"

	"tare/lab/image"
)

// Prepare makes what all guests with the image need: kernel, initramfs and disk. Provision does it too; done before,
// it does not count as a guest's start. What guests on a bridge need besides is made with the first of them.
func (d *Driver) Prepare(ctx context.Context, img *image.Image) error {
	if _, _, err := d.boot(ctx, false); err != nil {
		return err
	}
	_, err := img.Disk(ctx)
	return err
}
