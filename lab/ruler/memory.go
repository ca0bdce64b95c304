//go:build linux

package ruler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/lab/ruler/frames"
)

const (
	flagsRead   = 1 << 13   // frames whose flags are read with one call
	partSize    = 256 << 10 // approximate bytes of a part
	mapTogether = 1 << 16   // pages of a file that are mapped at once
	mostLooked  = 1 << 20   // greatest number of files to look at
	mostDeep    = 100       // greatest depth of folders
)

// notFiles are folders of the root whose files have no pages of their own.
var notFiles = []string{"/proc", "/sys", "/dev"}

// look implements executor.
func (g *guest) look(l *lookNote, say func(*seenNote) error) error {
	defer debug.FreeOSMemory() // the collector does not run by itself
	if g.proc == nil {
		return errors.New("it has no /proc")
	}
	if l.Files {
		f, err := newFinder(g.proc, say)
		if err != nil {
			return err
		}
		defer f.pagemap.Close()
		return f.find()
	}
	flags, err := g.proc.Open("kpageflags")
	if err != nil {
		return fmt.Errorf("/proc/kpageflags cannot be read, which needs root and a kernel with CONFIG_PROC_PAGE_MONITOR: %w", err)
	}
	defer flags.Close()
	if err := codes(flags, l.Frames, say); err != nil {
		return err
	}
	zones, err := g.proc.ReadFile("zoneinfo")
	if err != nil {
		return fmt.Errorf("/proc/zoneinfo: %w", err)
	}
	return say(&seenNote{Kept: kept(string(zones))})
}

// kept adds up the free frames that each CPU keeps in reserve for each zone, in /proc/zoneinfo.
func kept(zones string) (n int64) {
	for line := range strings.Lines(zones) {
		if of, count, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && of == "count" {
			k, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64) // a count that is not a number counts nothing
			n += max(0, k)
		}
	}
	return n
}

// codes describes frames, by a file with their flags.
func codes(flags io.ReaderAt, of []frames.Range, say func(*seenNote) error) error {
	raw, each := make([]byte, 8*flagsRead), make([]uint64, flagsRead)
	all := make([]frames.Code, 0, flagsRead)
	var part []byte
	for _, r := range of {
		head := frames.Code(0)
		for first, left := r.First, r.N; left > 0; {
			n := min(left, flagsRead)
			got, err := flags.ReadAt(raw[:8*n], int64(first)*8)
			if err != nil && err != io.EOF {
				return fmt.Errorf("/proc/kpageflags: of frame %#x: %w", first, err)
			}
			const noPage = 1 << 20
			for i := range int(n) { // after the end of the file there is no memory
				if each[i] = noPage; 8*i+8 <= got {
					each[i] = binary.NativeEndian.Uint64(raw[8*i:])
				}
			}
			all = frames.Append(all[:0], each[:n], head)
			head = all[len(all)-1]
			if part = frames.Pack(part, all); len(part) > partSize {
				if err := say(&seenNote{Codes: part}); err != nil {
					return err
				}
				part = part[:0]
			}
			first, left = first+n, left-n
		}
	}
	return say(&seenNote{Codes: part})
}

// finder finds the frames of files in the page cache.
type finder struct {
	pagemap *os.File
	say     func(*seenNote) error
	until   time.Time
	looked  int
	links   map[[2]uint64]bool // files with several names that were found already
	part    seenNote
	size    int // approximate size of the part, in bytes
	failed  int // files that could not be examined
	why     error
	entries []byte
	there   []byte
}

func newFinder(proc *os.Root, say func(*seenNote) error) (*finder, error) {
	pagemap, err := proc.Open("self/pagemap")
	if err != nil {
		return nil, fmt.Errorf("/proc/self/pagemap cannot be read: %w", err)
	}
	return &finder{pagemap: pagemap, say: say, until: time.Now().Add(seekTime), links: map[[2]uint64]bool{}, entries: make([]byte, 8*mapTogether), there: make([]byte, mapTogether)}, nil
}

// errEnough ends the search: its time or number of files is used up.
var errEnough = errors.New("enough")

// find reports the frames of all files of the root, of the ruler's own program, and of the root's disk. The disk's are the file
// system's own, including its folders.
func (f *finder) find() error {
	err := f.folder("/", 0)
	if errors.Is(err, errEnough) {
		f.part.Out = fmt.Sprintf("the files after the first %d, for lack of time", f.looked)
		err = nil
	}
	if err == nil {
		err = f.open("/proc/self/exe", "the ruler")
	}
	if err == nil {
		err = f.disk()
	}
	if err != nil {
		return err
	}
	if f.failed > 0 {
		f.part.Out = strings.TrimPrefix(fmt.Sprintf("%s; %d files that could not be examined: %v", f.part.Out, f.failed, f.why), "; ")
	}
	f.part.Out = clip(f.part.Out)
	return f.say(&f.part)
}

// folder examines what is in a folder and below.
func (f *finder) folder(path string, deep int) error {
	if deep > mostDeep {
		f.miss(fmt.Errorf("%.100s: more than %d nested folders", path, mostDeep))
		return nil
	}
	all, err := os.ReadDir(path)
	if err != nil {
		f.miss(err)
	}
	for _, e := range all {
		name := strings.TrimSuffix(path, "/") + "/" + e.Name()
		switch {
		case e.IsDir() && !slices.Contains(notFiles, name):
			err = f.folder(name, deep+1)
		case e.Type().IsRegular():
			if f.looked++; f.looked > mostLooked || time.Now().After(f.until) {
				return errEnough
			}
			err = f.open(name, name)
		default:
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// miss counts files that could not be examined. A file that is gone does not count.
func (f *finder) miss(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		f.failed++
		f.why = err
	}
}

// open examines a file. The error is that of the stream.
func (f *finder) open(path, name string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOATIME, 0)
	if err != nil {
		f.miss(&fs.PathError{Op: "open", Path: path, Err: err})
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.miss(&fs.PathError{Op: "stat", Path: path, Err: err})
		return nil
	}
	if key := [2]uint64{uint64(st.Dev), st.Ino}; st.Nlink > 1 {
		if f.links[key] {
			return nil
		}
		f.links[key] = true
	}
	return f.file(fd, st.Size, name)
}

// disk examines the block device of the root.
func (f *finder) disk() error {
	var st unix.Stat_t
	if err := unix.Stat("/", &st); err != nil {
		return err
	}
	const node = "/dev/.tare-disk"
	err := unix.Mknod(node, unix.S_IFBLK|0o400, int(st.Dev))
	if err == nil {
		defer unix.Unlink(node)
		var fd int
		if fd, err = unix.Open(node, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			defer unix.Close(fd)
			var size int64
			if size, err = unix.Seek(fd, 0, io.SeekEnd); err == nil {
				return f.file(fd, size, "the file system of /: folders, inodes, journal")
			}
		}
	}
	f.miss(fmt.Errorf("the disk of /: %w", err))
	return nil
}

// file reports the frames in the page cache of an open file of this size, if any.
func (f *finder) file(fd int, size int64, name string) error {
	of := frames.Named{Name: strings.ToValidUTF8(name, "?")}
	if len(of.Name) > frames.MostName {
		of.Name = strings.ToValidUTF8(of.Name[:frames.MostName], "")
	}
	for at := int64(0); at < size; at += mapTogether * frames.Size {
		if err := f.mapped(fd, at, min(size-at, mapTogether*frames.Size), &of); err != nil {
			f.miss(fmt.Errorf("%.200s: %w", name, err))
			break
		}
	}
	if len(of.Frames) == 0 {
		return nil
	}
	f.part.Files = append(f.part.Files, of)
	if f.size += len(of.Name) + 40*len(of.Frames); f.size > partSize {
		if err := f.say(&f.part); err != nil {
			return err
		}
		f.part, f.size = seenNote{Out: f.part.Out}, 0
	}
	return nil
}

// mapped adds the frames of this many bytes of a file. It touches only what is in the page cache, and reads nothing ahead, so that
// it brings no page into the cache.
func (f *finder) mapped(fd int, at, size int64, of *frames.Named) error {
	data, err := unix.Mmap(fd, at, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(data)
	if err := unix.Madvise(data, unix.MADV_RANDOM); err != nil {
		return fmt.Errorf("madvise: %w", err)
	}
	pages := (int(size) + frames.Size - 1) / frames.Size
	there := f.there[:pages]
	if err := mincore(data, there); err != nil {
		return fmt.Errorf("mincore: %w", err)
	}
	for i := 0; i < pages; i++ {
		if there[i]&1 == 0 {
			continue
		}
		first := i
		for i+1 < pages && there[i+1]&1 != 0 {
			i++
		}
		part := data[first*frames.Size : min(int(size), (i+1)*frames.Size)]
		// The kernel touches them: then a file that became shorter gives an error, not a signal.
		if err := unix.Madvise(part, unix.MADV_POPULATE_READ); err != nil {
			return fmt.Errorf("madvise (MADV_POPULATE_READ, since Linux 5.14): %w", err)
		}
		entries := f.entries[:8*(i-first+1)]
		if _, err := f.pagemap.ReadAt(entries, int64(address(part))/frames.Size*8); err != nil {
			return fmt.Errorf("pagemap: %w", err)
		}
		for j := 0; j < len(entries); j += 8 {
			const present, frame = 1 << 63, 1<<55 - 1
			e := binary.NativeEndian.Uint64(entries[j:])
			if e&present == 0 || e&frame == 0 {
				continue // the page is gone
			}
			if n := len(of.Frames); n > 0 && of.Frames[n-1].First+of.Frames[n-1].N == e&frame {
				of.Frames[n-1].N++
			} else {
				of.Frames = append(of.Frames, frames.Range{First: e & frame, N: 1})
			}
		}
	}
	return nil
}

// mincore says of each page of a mapping whether it is in memory.
func mincore(data, there []byte) error {
	_, _, errno := syscall.Syscall(unix.SYS_MINCORE, address(data), uintptr(len(data)), address(there))
	if errno != 0 {
		return errno
	}
	return nil
}

// address is the address of the bytes.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
