//go:build linux

package suite

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"
)

// partition is the name of the partition with the results, as an archive.
const partition = "tare-results"

// before is how much of an image is read, in MiB: its table and the partitions up to that of the results, which therefore comes
// before the system's.
const before = 64 + resultsMiB

// Results writes the results on a suite's disk, a disk image in qcow2 or raw format, to a new folder. The disk is not trusted.
func Results(ctx context.Context, disk, out string) (err error) {
	f, err := os.OpenFile(disk, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s must be a regular file: a disk image that `tare image` made", disk))
	}
	format, err := inspect(f)
	if err != nil {
		return fmt.Errorf("%s: %w", disk, err)
	}
	if format == qcow2 {
		raw, err := convert(ctx, f)
		if err != nil {
			return fmt.Errorf("%s: %w", disk, err)
		}
		f.Close()
		f = raw
	}
	at, size, err := find(f, partition)
	if err != nil {
		return fmt.Errorf("%s: %w", disk, err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	n, err := extract(io.NewSectionReader(f, at, size), out)
	if err == nil && n == 0 {
		err = errors.New("its study has not ended yet: boot it, and wait until the machine has switched itself off")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", disk, err), os.RemoveAll(out))
	}
	return nil
}

// Formats of disk images, by their first bytes: the one that is converted, and others, which must not be taken for raw images.
const qcow2 = "qcow2"

var magics = map[string]string{qcow2: "QFI\xfb", "vmdk": "KDMV", "vhdx": "vhdxfile", "qed": "QED\x00", "luks": "LUKS\xba\xbe"}

// inspect returns the format of an image, qcow2 or raw, by its first bytes, and refuses one that refers to other files. It does not
// use QEMU, which would open whatever the image names.
func inspect(disk io.ReaderAt) (string, error) {
	head := make([]byte, 104) // qcow2's header of version 3
	n, err := disk.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	head = head[:n]
	format := "raw"
	for name, magic := range magics {
		if bytes.HasPrefix(head, []byte(magic)) {
			format = name
		}
	}
	if bytes.HasPrefix(head, []byte("# Disk DescriptorFile")) {
		format = "vmdk"
	}
	switch {
	case format == "raw":
		return format, nil
	case format != qcow2:
		return "", fmt.Errorf("it is an image in the format %q; use qcow2 or raw (qemu-img convert -O qcow2 makes one)", format)
	case len(head) < 72:
		return "", errors.New("its qcow2 header is cut off")
	}
	const elsewhere = 1 << 2 // an incompatible feature: the data are in another file
	version, backing := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint64(head[8:])
	if version != 2 && version != 3 || version == 3 && len(head) < 104 {
		return "", fmt.Errorf("its qcow2 header has version %d; use version 2 or 3 (qemu-img convert -O qcow2 makes one)", version)
	}
	if backing != 0 || version == 3 && binary.BigEndian.Uint64(head[72:])&elsewhere != 0 {
		return "", errors.New("it is only a part of an image: the rest is in another file; use an image in one file (qemu-img convert makes one)")
	}
	return format, nil
}

// Limits of converting: memory, CPU time, and total time.
const (
	convertMemory = 4 << 30
	convertCPU    = 5 * 60 // s
	convertTime   = 10 * time.Minute
)

// convert writes the first part of a qcow2 image as a raw one to a file without a name. The image's own file is open, so that no
// other is read instead.
func convert(ctx context.Context, disk *os.File) (raw *os.File, err error) {
	converter, err := findQEMUImg()
	if err != nil {
		return nil, err
	}
	if raw, err = os.CreateTemp("", "tare-suite-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	if err := os.Remove(raw.Name()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, convertTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, converter, "dd", "-f", qcow2, "-O", "raw", "bs=1048576", fmt.Sprintf("count=%d", before), "if=/proc/self/fd/3", "of=/proc/self/fd/4")
	cmd.ExtraFiles = []*os.File{disk, raw}
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	limits := errors.Join(limit(cmd, unix.RLIMIT_AS, convertMemory), limit(cmd, unix.RLIMIT_CPU, convertCPU), limit(cmd, unix.RLIMIT_FSIZE, before<<20))
	if limits != nil {
		_ = cmd.Process.Kill() // do not wait for it, whatever it has read
	}
	if err := cmd.Wait(); err != nil || limits != nil {
		return nil, cmp.Or(context.Cause(ctx), limits, fmt.Errorf("qemu-img dd: %w: %s", err, strings.TrimSpace(said.String())))
	}
	return raw, nil
}

func limit(cmd *exec.Cmd, resource int, most uint64) error {
	return unix.Prlimit(cmd.Process.Pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// A GUID partition table (UEFI specification, 5.3): a header in the second sector, and entries at the place and in the number that
// it gives.
const (
	sector    = 512
	mostParts = 1024
)

// find returns the place of the partition of that name, in bytes.
func find(disk io.ReaderAt, name string) (at, size int64, err error) {
	none := fmt.Errorf("it is not a suite's image from `tare image`: it has no partition %s", name)
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

// top is the only folder in the archive, and mostFiles bounds its files.
const (
	top       = "results"
	mostFiles = 10_000
)

// extract writes the archive's files to a folder, and returns their number. It writes nothing elsewhere.
func extract(archive io.Reader, out string) (n int, err error) {
	root, err := os.OpenRoot(out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	room := int64(resultsMiB << 20) // a sparse file may claim to be longer than the archive
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
			return n, fmt.Errorf("its results have %.200q, which is not in the folder %s", h.Name, top)
		case h.Typeflag == tar.TypeDir && name == "":
		case h.Typeflag == tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case h.Typeflag == tar.TypeReg && (n == mostFiles || h.Size > room):
			err = fmt.Errorf("its results must have at most %d files and %d MiB", mostFiles, resultsMiB)
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
