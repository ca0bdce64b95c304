//go:build linux

package suite

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
)

// partition is the name of the one that has the results, as an archive.
const partition = "tare-results"

// before is what of an image is looked at, in MiB: its table and the partitions up to that of the results, which lies before the system's for that.
const before = 64 + resultsMiB

// Results writes the results that a suite has kept on its disk, a disk image in qcow2 or raw format, to a folder that is not there yet. The disk may come from anywhere.
func Results(ctx context.Context, disk, out string) (err error) {
	converter, err := findQEMUImg()
	if err != nil {
		return err
	}
	format, err := inspect(ctx, converter, disk)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tare-suite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	raw := filepath.Join(dir, "raw")
	if _, err := output(ctx, converter, "dd", "-f", format, "-O", "raw", "bs=1048576", fmt.Sprintf("count=%d", before), "if="+disk, "of="+raw); err != nil {
		return err
	}
	f, err := os.Open(raw)
	if err != nil {
		return err
	}
	defer f.Close()
	at, size, err := find(f, partition)
	if err != nil {
		return fmt.Errorf("%s: %w", disk, err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	n, err := extract(io.NewSectionReader(f, at, size), out)
	if err == nil && n == 0 {
		err = errors.New("its study has not ended yet: boot it, and wait until it has switched itself off")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", disk, err), os.RemoveAll(out))
	}
	return nil
}

// inspect gives the format of an image, and refuses one that has other files read for it.
func inspect(ctx context.Context, converter, disk string) (string, error) {
	said, err := output(ctx, converter, "info", "--output=json", disk)
	if err != nil {
		return "", err
	}
	var info struct {
		Format   string `json:"format"`
		Backing  string `json:"backing-filename"`
		Specific struct {
			Data struct {
				File string `json:"data-file"`
			} `json:"data"`
		} `json:"format-specific"`
	}
	if err := json.Unmarshal(said, &info); err != nil {
		return "", fmt.Errorf("what qemu-img says of %s: %w", disk, err)
	}
	if other := info.Backing + info.Specific.Data.File; other != "" {
		return "", fmt.Errorf("%s is only a part of an image, beside %q: an image in one file was expected (qemu-img convert makes one)", disk, other)
	}
	if !slices.Contains([]string{"qcow2", "raw"}, info.Format) {
		return "", fmt.Errorf("%s is an image in the format %q: qcow2 or raw was expected (qemu-img convert -O qcow2 makes one)", disk, info.Format)
	}
	return info.Format, nil
}

// output runs one of qemu-img's commands.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// A GUID partition table (UEFI specification, 5.3): a header in the second sector, and entries whose place and number it has.
const (
	sector    = 512
	mostParts = 1024
)

// find is where the partition of that name lies, in bytes.
func find(disk io.ReaderAt, name string) (at, size int64, err error) {
	none := fmt.Errorf("it is no image of a suite, as `tare image` makes them: it has no partition %s", name)
	header := make([]byte, sector)
	if _, err := disk.ReadAt(header, sector); err != nil || !bytes.HasPrefix(header, []byte("EFI PART")) {
		return 0, 0, none
	}
	first, number, each := binary.LittleEndian.Uint64(header[72:]), binary.LittleEndian.Uint32(header[80:]), binary.LittleEndian.Uint32(header[84:])
	if first > before<<20/sector || number > mostParts || each < 128 || each > 4096 {
		return 0, 0, none
	}
	entry := make([]byte, each)
	for i := range int64(number) {
		if _, err := disk.ReadAt(entry, int64(first)*sector+i*int64(each)); err != nil {
			return 0, 0, none
		}
		var text []uint16
		for j := 56; j < 128; j += 2 {
			if c := binary.LittleEndian.Uint16(entry[j:]); c != 0 {
				text = append(text, c)
			}
		}
		from, to := binary.LittleEndian.Uint64(entry[32:]), binary.LittleEndian.Uint64(entry[40:])
		if string(utf16.Decode(text)) != name {
			continue
		}
		if from > to || to >= before<<20/sector {
			return 0, 0, none
		}
		return int64(from) * sector, int64(to-from+1) * sector, nil
	}
	return 0, 0, none
}

// top is the folder that the archive has, and mostFiles bounds what is in it.
const (
	top       = "results"
	mostFiles = 10_000
)

// extract writes the archive's files to a folder, and says how many. Nothing is written elsewhere.
func extract(archive io.Reader, out string) (n int, err error) {
	root, err := os.OpenRoot(out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	room := int64(resultsMiB << 20) // a sparse file may say that it is longer than the archive
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("its results are damaged: %w", err)
		}
		name := strings.Trim(strings.TrimPrefix(filepath.Clean(h.Name), top), "/")
		switch {
		case !filepath.IsLocal(filepath.Clean(h.Name)) || !strings.HasPrefix(filepath.Clean(h.Name)+"/", top+"/"):
			return n, fmt.Errorf("its results have %.200q, which is in no folder %s", h.Name, top)
		case h.Typeflag == tar.TypeDir && name == "":
		case h.Typeflag == tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case h.Typeflag == tar.TypeReg && (n == mostFiles || h.Size > room):
			err = fmt.Errorf("its results have more than %d files or %d MiB", mostFiles, resultsMiB)
		case h.Typeflag == tar.TypeReg:
			n, room = n+1, room-h.Size
			err = write(root, name, r)
		default:
			err = fmt.Errorf("its results have %.200q, which is neither a file nor a folder", h.Name)
		}
		if err != nil {
			return n, err
		}
	}
}

func write(root *os.Root, name string, from io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), fs.FileMode(0o755)); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
