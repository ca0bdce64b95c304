package image

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"tare/lab/proc"
)

// Tar writes the folder as an uncompressed tar stream (PAX), by GNU tar: with owners, modes, times to the nanosecond, hard and
// symbolic links, and file capabilities. The same folder gives the same bytes. It follows no link.
func (t *Tree) Tar(ctx context.Context, w io.Writer) error {
	said := &proc.Tail{}
	err := run(ctx, func(cmd *exec.Cmd) {
		cmd.Stderr = said
		cmd.Env = []string{"LC_ALL=C"} // and no TAR_OPTIONS
	}, func(stdout io.Reader) error {
		_, err := io.Copy(w, stdout)
		return err
	}, "tar", "--create", "--file=-", "--directory="+t.Dir, "--sort=name", "--numeric-owner", "--xattrs", "--xattrs-include="+capability,
		// Access times, and the number of tar's own process, are not properties of the folder.
		"--format=pax", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", ".")
	if err != nil {
		return fmt.Errorf("%s as tar: %w%s", t.Digest, err, outputTail(said))
	}
	return nil
}
