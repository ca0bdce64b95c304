package image

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"tare/lab/proc"
)

// Tar writes the folder as an uncompressed tar stream (PAX), by GNU tar: with owners, modes, times to the nanosecond, hard and
// symbolic links, and file capabilities. The same folder gives the same bytes. It follows no link.
func (t *Tree) Tar(ctx context.Context, w io.Writer) error {
	return t.tar(ctx, w, "", nil, "--sort=name", ".")
}

// TarOf is Tar for some of the folder's files, as from Split. The comment is in the stream and not in what it unpacks to, so that two streams of the
// same files differ.
func (t *Tree) TarOf(ctx context.Context, w io.Writer, paths []string, comment string) error {
	names := strings.NewReader(strings.Join(paths, "\x00"))
	options := ""
	if comment != "" {
		options = ",globexthdr.name=comment,comment=" + comment
	}
	return t.tar(ctx, w, options, names, "--no-recursion", "--null", "--verbatim-files-from", "--files-from=-")
}

func (t *Tree) tar(ctx context.Context, w io.Writer, options string, stdin io.Reader, what ...string) error {
	said := &proc.Tail{}
	err := run(ctx, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stderr = stdin, said
		cmd.Env = []string{"LC_ALL=C"} // and no TAR_OPTIONS
	}, func(stdout io.Reader) error {
		_, err := io.Copy(w, stdout)
		return err
	}, "tar", append([]string{"--create", "--file=-", "--directory=" + t.Dir, "--numeric-owner", "--xattrs", "--xattrs-include=" + capability,
		// Access times, and the number of tar's own process, are not properties of the folder.
		"--format=pax", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime" + options}, what...)...)
	if err != nil {
		return fmt.Errorf("%s as tar: %w%s", t.Digest, err, outputTail(said))
	}
	return nil
}

// Split divides the folder's files, in the order of their names, into n parts of about the same size, for TarOf. Each part also has the folders above its
// files, so that it can be unpacked by itself. It returns an error if there are too few files for n parts.
func (t *Tree) Split(n int) ([][]string, error) {
	type file struct {
		path string
		size int64
	}
	var all []file
	var total int64
	err := filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(t.Dir, path)
		of := file{path: name}
		if info.Mode().IsRegular() {
			of.size = info.Size()
		}
		total += of.size
		all = append(all, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	var parts [][]string
	var seen map[string]bool // of the last part
	var add func(name string)
	add = func(name string) { // with the folders above it, the outermost first
		if seen[name] {
			return
		}
		seen[name] = true
		if name != "." {
			add(filepath.Dir(name))
		}
		last := &parts[len(parts)-1]
		*last = append(*last, "./"+name)
	}
	var done int64
	for _, f := range all {
		if done >= total/int64(n)*int64(len(parts)) && len(parts) < n {
			parts, seen = append(parts, nil), map[string]bool{}
		}
		add(f.path)
		done += f.size
	}
	if len(parts) < n {
		return nil, fmt.Errorf("%s has too few files for %d layers; choose at most %d", t.Digest, n, len(parts))
	}
	return parts, nil
}

// Tag is the beginning of the folder's digest, for names of images. It returns an error for a digest that is not ALGORITHM:HEX.
func (t *Tree) Tag() (string, error) {
	_, hex, ok := strings.Cut(t.Digest, ":")
	if !ok || len(hex) < 12 {
		return "", fmt.Errorf("image digest %q: must be ALGORITHM:HEX", t.Digest)
	}
	return hex[:12], nil
}
