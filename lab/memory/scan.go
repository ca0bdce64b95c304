//go:build linux

package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Options say what to read.
type Options struct {
	Contents bool  // hash the contents of pages
	Cache    bool  // with Contents: also compare pages of files that only the host's page cache has. Some kernels do not let frames be read, and then it has no effect
	Most     int64 // bytes of memory for the scanner's pages; the rest goes to a file; 0: DefaultMost
}

// DefaultMost is the default limit of a scan's memory for pages, in bytes. It is enough for 100 GiB that processes map.
const DefaultMost = 1 << 30

// Process is a scanned process.
type Process struct {
	PID   int
	Err   error // why none of its pages are listed: it has ended, or may not be read
	start uint64
}

// Region is a mapping of one of the processes.
type Region struct {
	proc.Mapping
	Process int   // index in Snapshot.Processes
	Pool    int64 // size of its pages, in bytes, where they are of the pool of huge pages; 0: they are not, or it is unknown
}

// Snapshot is what processes mapped during a scan. It does not show one instant: it counts pages that changed during the scan.
type Snapshot struct {
	Processes []Process
	Regions   []Region
	Pages     []Page // in no particular order
	Changed   int64  // pages that differed at the second look: they moved, went away, or got another content
	Unread    int64  // pages whose content cannot be read
	Spilled   int64  // bytes that went to a file, beyond Options.Most; 0 if there was room in memory
	Cached    int64  // pages of files that no process maps, with which others were compared; −1: there was no comparison with them
	store     *store
	seed      uint64 // of the hashes of contents
	cache     int    // index, from 1, of the placeholder for the page cache in Processes; 0: none
}

// Close frees the memory of the pages.
func (s *Snapshot) Close() error {
	s.Pages = nil
	return s.store.Close()
}

// Address is where the process of the page maps it.
func (s *Snapshot) Address(p *Page) uint64 {
	return s.Regions[p.region].Start + uint64(p.at)*uint64(PageSize)
}

// Region is the mapping that the page is in.
func (s *Snapshot) Region(p *Page) *Region { return &s.Regions[p.region] }

// Withheld is the error where the kernel hides the frames of processes.
type Withheld struct{ Why error }

// Error says what is wrong, and what to do.
func (e *Withheld) Error() string {
	return fmt.Sprintf("the kernel hides the frames of pages (%v): run tare as root on the host itself (sudo tare …)", e.Why)
}

// Unwrap is the reason.
func (e *Withheld) Unwrap() error { return e.Why }

// Full is the error where there are too many pages.
type Full struct {
	Most int64 // limit of the scanner's memory, in bytes
	Why  error // why no more go to a file
}

// Error says what is wrong, and what to do.
func (e *Full) Error() string {
	return fmt.Sprintf("the list of the processes' pages needs more than the limit of %.3g MiB, and a file cannot take the rest (%v): raise --max-memory, name fewer processes, or set TMPDIR to a folder on a disk with room",
		float64(e.Most)/(1<<20), e.Why)
}

// Unwrap is the reason.
func (e *Full) Unwrap() error { return e.Why }

const (
	chunk     = 1 << 14 // pages that one worker reads together
	block     = 256     // pages that are listed, classified and read together, so that the kernel's data about each stays in a CPU's cache
	together  = 64      // pages whose contents are read together, so that they stay in a CPU's cache until they are hashed
	partPages = 1024    // pages that one worker reads again together
	gap       = 4       // unwanted frames that are read anyway to save a call
	pageSize  = int(unsafe.Sizeof(Page{}))
	perPage   = 40 // bytes that a page needs at most, including the search for duplicates
)

// scanner is a running scan.
type scanner struct {
	*Snapshot
	Options
	flags, counts *kernelFile
	holes         bool         // the kernel lists populated ranges: PAGEMAP_SCAN
	frames        *frameReader // nil: pieces of pages are read through the processes
	mu            sync.Mutex
	changed       atomic.Int64
	unread        atomic.Int64
	stop          atomic.Pointer[error]
}

// process is a process during the scan.
type process struct {
	pid     int
	pagemap *kernelFile
	work    sync.WaitGroup
	planned bool // it had mappings
	ended   atomic.Bool
}

// task is a part of a process for one worker: at most chunk pages of a region.
type task struct {
	of         *process
	region     Region
	index      uint32 // of the region
	start, end uint64
	huge       bool
}

// Scan reads the pages of processes. The snapshot lists each process, whatever happened to it. The error is a *Withheld where the
// kernel hides frames, and a *Full where there are too many pages.
func Scan(ctx context.Context, pids []int, o Options) (*Snapshot, error) {
	return scan(ctx, pids, o, true, true)
}

// scan is Scan with or without what some kernels lack: PAGEMAP_SCAN, and reading pieces by their frames.
func scan(ctx context.Context, pids []int, o Options, holes, frames bool) (snapshot *Snapshot, err error) {
	o.Most = cmp.Or(o.Most, DefaultMost)
	s := &scanner{Snapshot: &Snapshot{seed: rand.Uint64(), Cached: -1}, Options: o, holes: holes}
	for file, to := range map[string]**kernelFile{"/proc/kpageflags": &s.flags, "/proc/kpagecount": &s.counts} {
		if *to, err = openKernel(file); err != nil {
			return nil, &Withheld{err}
		}
		defer (*to).Close()
	}
	if err := shown(); err != nil {
		return nil, err
	}
	if s.store, err = newStore(o.Most); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()

	cpus := runtime.GOMAXPROCS(0)
	if o.Contents && frames {
		if s.frames, err = openFrames(s.seed, cpus); err == nil {
			defer s.frames.Close()
		}
	}
	all := s.lookAt(ctx, pids, cpus)
	if e := s.stop.Load(); e != nil {
		return nil, *e
	}
	s.Changed, s.Unread = s.changed.Load(), s.unread.Load()
	s.dropEnded(all)
	if o.Contents {
		if err := s.readShared(); err != nil {
			return nil, err
		}
		if o.Cache && s.frames != nil {
			if err := s.readCache(ctx); err != nil {
				return nil, err
			}
		}
		if err := s.compare(); err != nil {
			return nil, err
		}
	}
	s.sizePool()
	s.Spilled = s.store.largest
	return s.Snapshot, nil
}

// lookAt lists the processes and has their pages read, by one worker for each CPU.
func (s *scanner) lookAt(ctx context.Context, pids []int, cpus int) (all []*process) {
	tasks := make(chan task)
	var workers, ends sync.WaitGroup
	for i := range cpus {
		workers.Go(func() {
			w := newWorker(s, i)
			for t := range tasks {
				w.look(t)
				t.of.work.Done()
			}
		})
	}
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			s.fail(err)
		}
		if s.stop.Load() != nil {
			break
		}
		i := len(s.Processes)
		s.Processes = append(s.Processes, Process{PID: pid})
		of := &process{pid: pid}
		var err error
		if s.Processes[i].start, err = proc.StartTime(pid); err == nil {
			of.pagemap, err = openKernel(fmt.Sprintf("/proc/%d/pagemap", pid))
		}
		if err == nil {
			err = s.plan(i, of, tasks)
			ends.Go(func() {
				of.work.Wait()
				of.pagemap.Close()
			})
		}
		s.Processes[i].Err = err
		all = append(all, of)
	}
	close(tasks)
	workers.Wait()
	ends.Wait()
	return all
}

// shown returns a *Withheld if the kernel hides the frame of a page that certainly exists.
func shown() error {
	page, err := proc.NewPage()
	if err != nil {
		return &Withheld{err}
	}
	defer page.Close()
	page.Content[0] = 1
	if _, err := page.Frame(); err != nil {
		return &Withheld{err}
	}
	return nil
}

func (s *scanner) fail(err error) { s.stop.CompareAndSwap(nil, &err) }

// plan lists a process's regions and hands out tasks for them.
func (s *scanner) plan(index int, of *process, tasks chan<- task) error {
	maps, err := proc.Maps(of.pid)
	if err != nil {
		return err
	}
	base := len(s.Regions)
	for _, m := range maps {
		const most = 1 << 32 // pages of a region: Page.at has 32 bits
		for part := m; m.Start < m.End && m.Start < 1<<63; m.Start, m.Offset = part.End, m.Offset+part.End-part.Start {
			part = m
			part.End = min(m.End, m.Start+most*uint64(PageSize))
			s.Regions = append(s.Regions, Region{Mapping: part, Process: index})
		}
	}
	at := base
	hand := func(start, end uint64, huge bool) bool {
		for at < len(s.Regions) && start < end {
			r := &s.Regions[at]
			if start >= r.End {
				at++
				continue
			}
			start = max(start, r.Start)
			stop := min(end, r.End, start+chunk*uint64(PageSize))
			if start >= stop {
				break // between mappings: they have changed since they were listed
			}
			of.work.Add(1)
			tasks <- task{of, *r, uint32(at), start, stop, huge}
			start = stop
		}
		return s.stop.Load() == nil
	}
	if of.planned = base < len(s.Regions); !of.planned {
		return nil // the kernel's own
	}
	if s.holes {
		err := populated(of.pagemap, s.Regions[base].Start, s.Regions[len(s.Regions)-1].End, hand)
		if !errors.Is(err, unix.ENOTTY) {
			return err
		}
		s.holes = false
	}
	for _, r := range s.Regions[base:] {
		if !hand(r.Start, r.End, false) {
			break
		}
	}
	return nil
}

// The arguments and results of PAGEMAP_SCAN (include/uapi/linux/fs.h), which kernels before 6.7 do not have.
const (
	pagemapScan  = 0xc0606610
	scanPresent  = 1 << 3
	scanSwapped  = 1 << 4
	scanHuge     = 1 << 6
	scanRegions  = 1024
	scanArgBytes = 96
)

type pageRegion struct{ start, end, categories uint64 }

type scanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, mask, anyOf, wanted                           uint64
}

// populated calls f for each range of addresses with pages, in ascending order, until f returns false.
func populated(pagemap *kernelFile, start, end uint64, f func(start, end uint64, huge bool) bool) error {
	found := make([]pageRegion, scanRegions)
	for start < end {
		a := scanArg{size: scanArgBytes, start: start, end: end, vec: uint64(uintptr(unsafe.Pointer(&found[0]))), vecLen: scanRegions, anyOf: scanPresent | scanSwapped, wanted: scanHuge}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap.fd, pagemapScan, uintptr(unsafe.Pointer(&a)))
		runtime.KeepAlive(found)
		if errno != 0 {
			return errno // ESRCH: it has ended
		}
		for _, r := range found[:n] {
			if !f(r.start, r.end, r.categories&scanHuge != 0) {
				return nil
			}
		}
		if a.walkEnd <= start {
			return fmt.Errorf("PAGEMAP_SCAN stopped at %#x", start)
		}
		start = a.walkEnd
	}
	return nil
}

// worker is one of the goroutines that read pages, with its buffers.
type worker struct {
	*scanner
	entries []byte
	keys    []uint64
	kernel  []byte
	batch   []Page
	reader
}

func newWorker(s *scanner, i int) *worker {
	return &worker{scanner: s, entries: make([]byte, 8*block), kernel: make([]byte, 8*gap*block), batch: make([]Page, 0, block), reader: reader{seed: s.seed, frames: s.frames, worker: i}}
}

// look lists the pages of a task, block by block.
func (w *worker) look(t task) {
	for start := t.start; start < t.end && w.stop.Load() == nil && !t.of.ended.Load(); start += block * uint64(PageSize) {
		w.lookAt(t, start, min(t.end, start+block*uint64(PageSize)))
	}
}

func (w *worker) lookAt(t task, start, end uint64) {
	r := &t.region
	entries := w.entries[:(end-start)/uint64(PageSize)*8]
	if n, err := t.of.pagemap.ReadAt(entries, int64(start)/PageSize*8); n < len(entries) {
		if err != io.EOF && !errors.Is(err, unix.ESRCH) {
			w.fail(fmt.Errorf("pagemap of process %d: %w", t.of.pid, err))
		}
		t.of.ended.Store(true) // or it is another program now
		return
	}
	first := uint32((start - r.Start) / uint64(PageSize))
	moving := 0
	w.batch, moving = decode(w.batch[:0], entries, Page{region: t.index, at: first}, r.Inode != 0, t.huge)
	w.changed.Add(int64(moving))
	if err := w.classify(); err != nil {
		w.fail(err)
		return
	}
	if w.Contents {
		w.contents(t, start, first, entries)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	pages, err := w.store.pages(len(w.Pages) + len(w.batch))
	if err != nil {
		w.fail(err)
		return
	}
	copy(pages[len(w.Pages):], w.batch)
	w.Pages = pages
}

// kernelFile is a file of /proc whose reads the kernel answers at once. They are so frequent that Go's overhead costs as much as
// the system call, so reads use the descriptor directly, without Go's scheduler.
type kernelFile struct {
	*os.File
	fd uintptr
}

func openKernel(name string) (*kernelFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &kernelFile{f, f.Fd()}, nil
}

// ReadAt is one pread.
func (f *kernelFile) ReadAt(to []byte, offset int64) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, f.fd, uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(len(to)), uintptr(offset), 0, 0)
	runtime.KeepAlive(f)
	switch {
	case errno != 0:
		return 0, errno
	case int(n) < len(to):
		return int(n), io.EOF
	}
	return int(n), nil
}

// decode appends the pages of entries of /proc/PID/pagemap, starting at page first of a region. moving is the number of
// pages that are being moved.
func decode(pages []Page, entries []byte, first Page, inFile, huge bool) (all []Page, moving int) {
	always := uint32(0)
	if inFile {
		always = flagInFile
	}
	if huge {
		always |= flagMapped
	}
	for i := 0; i+8 <= len(entries); i += 8 {
		e := binary.NativeEndian.Uint64(entries[i:])
		p := first
		p.at += uint32(i / 8)
		switch {
		case e&entryPresent != 0:
			p.Frame = e & entryFrame
			if e&entryOnce != 0 {
				p.Count = 1
			}
			p.flags = always
			if e&entryFile != 0 {
				p.flags |= flagFile
			}
		case e&entrySwapped != 0 && e&entryGuard == 0 && e&entrySwapType < swapTypes:
			p.flags = flagSwapped
		case e&entrySwapped != 0 && e&entryGuard == 0:
			moving++
			continue
		default:
			continue
		}
		pages = append(pages, p)
	}
	return pages, moving
}

// classify reads the kernel's flags of the batch's frames, and the number of mappings where it is not 1.
func (w *worker) classify() error {
	err := w.about(w.flags, func(p *Page) bool { return p.flags&flagSwapped == 0 }, func(p *Page, v uint64) { p.flags |= uint32(v) & kpfBits })
	if err != nil {
		return err
	}
	err = w.about(w.counts, func(p *Page) bool { return p.Count == 0 && p.flags&(flagSwapped|kpfZeroPage) == 0 }, func(p *Page, v uint64) { p.Count = uint32(v) })
	before := len(w.batch)
	w.batch = slices.DeleteFunc(w.batch, func(p Page) bool { return p.Count == 0 && p.Kind().resident() }) // nobody maps them any more
	w.changed.Add(int64(before - len(w.batch)))
	return err
}

// about reads a file with 8 bytes for each frame, with one call for consecutive frames. (Sorting them first joins more, but costs
// as much.)
func (w *worker) about(file *kernelFile, which func(*Page) bool, set func(*Page, uint64)) error {
	for i := 0; i < len(w.batch); i++ {
		if !which(&w.batch[i]) {
			continue
		}
		first, last, start := w.batch[i].Frame, w.batch[i].Frame, i
		for i+1 < len(w.batch) {
			p := &w.batch[i+1]
			if which(p) {
				if p.Frame <= last || p.Frame-last > gap {
					break
				}
				last = p.Frame
			}
			i++
		}
		values := w.kernel[:(last-first+1)*8]
		if got, err := file.ReadAt(values, int64(first)*8); got < len(values) && err != io.EOF {
			return fmt.Errorf("%s: frame %#x: %w", file.Name(), first, err)
		} else {
			clear(values[got:]) // frames that are not memory of the host
		}
		for j := start; j <= i; j++ {
			if p := &w.batch[j]; which(p) {
				set(p, binary.NativeEndian.Uint64(values[(p.Frame-first)*8:]))
			}
		}
	}
	return nil
}

// contents hashes a piece of each page of the batch that is mapped once. The others are read once for all, at the end.
func (w *worker) contents(t task, start uint64, first uint32, entries []byte) {
	read := w.keys[:0]
	for i := range w.batch {
		if p := &w.batch[i]; !p.several() && p.readable() {
			read = append(read, uint64(i))
		}
	}
	w.keys = read
	if len(read) == 0 {
		return
	}
	hashes, err := w.pieces(t.of.pid, len(read), func(i int) uint64 { return t.region.Start + uint64(w.batch[read[i]].at)*uint64(PageSize) },
		func(i int) uint64 { return w.batch[read[i]].Frame })
	if err != nil {
		w.fail(err)
		return
	}
	again, _ := t.of.pagemap.ReadAt(entries, int64(start)/PageSize*8)
	for i, k := range read {
		p := &w.batch[k]
		at := int(p.at-first) * 8
		switch {
		case at >= again || binary.NativeEndian.Uint64(entries[at:])&(entryPresent|entryFrame) != entryPresent|p.Frame:
			w.changed.Add(1)
		case hashes[i] == 0:
			w.unread.Add(1)
		default:
			p.hash = hashes[i]
		}
	}
}

// readable reports whether the page has a meaningful content.
func (p *Page) readable() bool {
	switch p.Kind() {
	case Swapped, Zero, Device, Kernel:
		return false
	}
	return true
}

// several reports whether the page may be several processes' copy-on-write page, or KSM's. process_vm_readv would give the process
// a copy of such a page (FAULT_FLAG_UNSHARE, since Linux 5.19), and so increase the memory that it measures.
func (p *Page) several() bool { return p.Count != 1 || p.Kind() == Merged }

// reader reads other processes' memory.
type reader struct {
	seed       uint64
	frames     *frameReader // nil: no frame reader
	worker     int          // number of this worker for the frame reader
	buffer     []byte
	remote     []unix.RemoteIovec
	some, full []uint64 // hashes of pieces and of whole pages
}

// ready makes room for n pages, whose hashes are unknown.
func (r *reader) ready(n int) {
	if r.buffer == nil {
		r.buffer = make([]byte, together*int(PageSize))
	}
	r.unknown(n)
}

// unknown makes room for the hashes of n pages.
func (r *reader) unknown(n int) {
	for _, hashes := range []*[]uint64{&r.some, &r.full} {
		*hashes = slices.Grow((*hashes)[:0], n)[:n]
		clear(*hashes)
	}
}

// pieces returns the hashes of n pages' pieces, in the order of their addresses; 0 for one that cannot be read. Without a frame
// reader no page may be shared by several processes.
func (r *reader) pieces(pid, n int, address, frame func(i int) uint64) ([]uint64, error) {
	if r.frames == nil {
		pieces, _ := r.hash(pid, n, false, address)
		return pieces, nil
	}
	r.unknown(n)
	for i := range n {
		r.some[i] = frame(i)
	}
	for i := 0; i < n; i += block {
		if err := r.frames.hash(r.worker, r.some[i:min(n, i+block)]); err != nil {
			return nil, err
		}
	}
	return r.some, nil
}

// hash returns the hashes of n pages' pieces and, if whole, of their whole contents, in the order of their addresses; 0 for one
// that cannot be read.
func (r *reader) hash(pid, n int, whole bool, address func(i int) uint64) (pieces, wholes []uint64) {
	r.ready(n)
	most, at, size := block, uintptr(pieceAt), pieceBytes
	if whole {
		most, at, size = together, 0, int(PageSize)
	}
	for i := 0; i < n; {
		r.remote = r.remote[:0]
		pages := min(most, n-i)
		for j := range pages {
			a := uintptr(address(i+j)) + at
			if last := len(r.remote) - 1; last >= 0 && r.remote[last].Base+uintptr(r.remote[last].Len) == a {
				r.remote[last].Len += size
			} else {
				r.remote = append(r.remote, unix.RemoteIovec{Base: a, Len: size})
			}
		}
		local := unix.Iovec{Base: &r.buffer[0], Len: uint64(pages) * uint64(size)}
		// Not unix.ProcessVMReadv: a call is long enough for Go's scheduler to give the worker's CPU to others, but too short for
		// that to be worth it.
		got, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&r.remote[0])), uintptr(len(r.remote)), 0)
		if errno != 0 {
			got = 0
		}
		read := int(got) / size
		for j := range read {
			if whole {
				r.digest(i+j, r.buffer[j*size:(j+1)*size])
			} else {
				r.some[i+j] = pieceHash(r.seed, r.buffer[j*size:])
			}
		}
		if i += read; read < pages {
			i++ // this page cannot be read; maybe the next can
		}
	}
	return r.some, r.full
}

// hashShared is hash for whole pages that the process must not get copies of.
func (r *reader) hashShared(pid, n int, address func(i int) uint64) (pieces, wholes []uint64) {
	r.ready(n)
	memory, err := openKernel(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return r.some, r.full // it has ended, or may not be read
	}
	defer memory.Close()
	for i := 0; i < n; {
		pages := consecutive(min(together, n-i), func(j int) uint64 { return address(i + j) })
		got, _ := memory.ReadAt(r.buffer[:pages*int(PageSize)], int64(address(i)))
		read := got / int(PageSize)
		for j := range read {
			r.digest(i+j, r.buffer[j*int(PageSize):(j+1)*int(PageSize)])
		}
		if i += read; read < pages {
			i++ // this page cannot be read; maybe the next can
		}
	}
	return r.some, r.full
}

// digest hashes page i, which has been read.
func (r *reader) digest(i int, page []byte) {
	r.some[i], r.full[i] = pieceHash(r.seed, page[pieceAt:]), contentHash(r.seed, page)
}

// consecutive is how many of n pages, from the first on, have consecutive addresses.
func consecutive(n int, address func(i int) uint64) int {
	row := 1
	for row < n && address(row) == address(row-1)+uint64(PageSize) {
		row++
	}
	return row
}

// contentHash is never 0, which stands for an unknown content.
func contentHash(seed uint64, b []byte) uint64 { return max(1, xxh3.HashSeed(b, seed)) }

// dropEnded removes the pages of processes that have ended: the host may have reused them.
func (s *scanner) dropEnded(all []*process) {
	dropped := false
	for i, of := range all {
		p := &s.Processes[i]
		start, err := proc.StartTime(p.PID)
		_, none := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)) // missing for a process without memory: one that has ended but was not waited for, or the kernel's own
		bare := errors.Is(none, fs.ErrNotExist)
		switch {
		case err != nil || start != p.start || of.ended.Load() || bare && of.planned:
			p.Err = fmt.Errorf("process %d ended, or became another program, during the scan: %w", p.PID, fs.ErrNotExist)
		case bare:
			p.Err = nil
		}
		dropped = dropped || p.Err != nil
	}
	if dropped {
		s.Pages = slices.DeleteFunc(s.Pages, func(p Page) bool { return s.Processes[s.Region(&p).Process].Err != nil })
	}
}

// sortByFrame sorts the pages by their frames; those in swap, which have none, come first.
func (s *Snapshot) sortByFrame() {
	slices.SortFunc(s.Pages, func(a, b Page) int {
		if a.Frame != b.Frame {
			return cmp.Compare(a.Frame, b.Frame)
		}
		return byAddress(&a, &b)
	})
}

// byContent sorts the pages by their contents; those with an unknown content come first.
func (s *Snapshot) byContent() {
	slices.SortFunc(s.Pages, func(a, b Page) int {
		if c := byHash(&a, &b); c != 0 {
			return c
		}
		return byAddress(&a, &b)
	})
}

// Orders of pages. Each compares first, and separately, the field that decides most often.

func byHash(a, b *Page) int {
	if a.hash != b.hash {
		return cmp.Compare(a.hash, b.hash)
	}
	return cmp.Compare(a.Frame, b.Frame)
}

func byAddress(a, b *Page) int {
	if a.region != b.region {
		return cmp.Compare(a.region, b.region)
	}
	return cmp.Compare(a.at, b.at)
}

// groups calls f for each run of pages that are alike. The pages must be sorted accordingly.
func groups(pages []Page, alike func(a, b *Page) bool, f func(group []Page)) {
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && alike(&pages[0], &pages[n]) {
			n++
		}
		f(pages[:n])
		pages = pages[n:]
	}
}

func sameFrame(a, b *Page) bool { return a.Frame == b.Frame }
func sameHash(a, b *Page) bool  { return a.hash == b.hash }

// which lists some pages, by their indexes in Pages, in an order. free frees the list.
func (s *Snapshot) which(is func(p *Page) bool, compare func(a, b *Page) int) (which []uint32, free func() error, err error) {
	n := 0
	for i := range s.Pages {
		if is(&s.Pages[i]) {
			n++
		}
	}
	if which, free, err = s.store.list(n); err != nil {
		return nil, nil, err
	}
	which = which[:0]
	for i := range s.Pages {
		if is(&s.Pages[i]) {
			which = append(which, uint32(i))
		}
	}
	slices.SortFunc(which, func(a, b uint32) int { return compare(&s.Pages[a], &s.Pages[b]) })
	return which, free, nil
}

// readShared reads each frame that is mapped more than once, only once.
func (s *scanner) readShared() (err error) {
	all, free, err := s.which(func(p *Page) bool { return p.several() && p.readable() }, func(a, b *Page) int { return cmp.Compare(a.Frame, b.Frame) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	once, freeOnce, err := s.store.list(len(all))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, freeOnce()) }() // before the other list
	copy(once, all)
	same := func(a, b uint32) bool { return s.Pages[a].Frame == s.Pages[b].Frame }
	err = s.read(slices.CompactFunc(once, same), s.frames == nil, func(p *Page, piece, _ uint64, moved bool) {
		switch {
		case moved:
			s.Changed++
		case piece == 0:
			s.Unread++
		default:
			p.hash = piece
		}
	})
	if err != nil {
		return err
	}
	for i := 1; i < len(all); i++ {
		if same(all[i-1], all[i]) {
			s.Pages[all[i]].hash = s.Pages[all[i-1]].hash
		}
	}
	return nil
}

// compare finds identical pages. It reads whole those pages whose pieces equal another frame's, because the others are unlike any.
// Then it reads again those with the same content. It reads a page of zeros even if there is no other.
func (s *scanner) compare() (err error) {
	zeros := pieceHash(s.seed, make([]byte, pieceBytes))
	such := func(hash uint64) bool { return hash == zeros }
	all, free, err := s.possibleDuplicates(such)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := s.again(all, such, func(p *Page, piece, whole uint64, moved bool) {
		switch {
		case moved || whole != 0 && piece != p.hash:
			p.hash = 0
			s.Changed++
		case whole == 0: // its piece was read by its frame, which needs no permission of a process
			p.hash = 0
			s.Unread++
		default:
			p.hash = whole
		}
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b uint32) int { return byHash(&s.Pages[a], &s.Pages[b]) })
	return s.verify(all)
}

// verify reads again those of these pages that have the same content as another frame. A page whose content is now different has
// changed.
func (s *scanner) verify(all []uint32) error {
	return s.again(all, none, func(p *Page, _, whole uint64, moved bool) {
		if moved || whole != p.hash {
			p.hash = 0
			s.Changed++
		}
	})
}

func none(uint64) bool { return false }

// again reads each frame again, once, whose hash equals another one's or meets such. The pages are sorted by hashes and frames.
func (s *scanner) again(all []uint32, such func(hash uint64) bool, set func(p *Page, piece, whole uint64, moved bool)) (err error) {
	again, free, err := s.store.list(len(all))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	again = again[:0]
	for i := 0; i < len(all); {
		p, next := &s.Pages[all[i]], i+1
		for next < len(all) && s.Pages[all[next]].Frame == p.Frame {
			if q := &s.Pages[all[next]]; !sameHash(p, q) && p.hash != 0 { // the frame got another content, or the page another frame
				q.hash = 0
				s.Changed++
			}
			next++
		}
		if p.hash != 0 && (such(p.hash) || i > 0 && sameHash(&s.Pages[all[i-1]], p) || next < len(all) && sameHash(&s.Pages[all[next]], p)) {
			again = append(again, all[i])
		}
		i = next
	}
	if err := s.read(again, true, set); err != nil {
		return err
	}
	for i := 1; i < len(all); i++ { // the first page of a frame stands for all
		if p, q := &s.Pages[all[i-1]], &s.Pages[all[i]]; p.Frame == q.Frame && q.hash != 0 {
			q.hash = p.hash
		}
	}
	return nil
}

// filter is a set of hashes that keeps only their first bits. It has every hash that was added, and may have others. Its length is
// filterWords.
type filter []uint32

// filterWords is the length of a filter with a place for each of so many bits.
func filterWords(places int) int { return 1 << (max(6, bits.Len(uint(places))) - 5) }

func (f filter) place(hash uint64) (word *uint32, bit uint32) {
	at := hash >> (64 - bits.Len(uint(32*len(f)-1)))
	return &f[at/32], 1 << (at % 32)
}

func (f filter) add(hash uint64) {
	word, bit := f.place(hash)
	*word |= bit
}

func (f filter) has(hash uint64) bool {
	word, bit := f.place(hash)
	return *word&bit != 0
}

// possibleDuplicates lists the pages whose content another page may have, sorted by contents and frames. A page that it omits
// certainly differs from all others, and its hash does not meet such. It uses up to 2 bytes a page while it makes the list, and
// does not sort all pages.
func (s *Snapshot) possibleDuplicates(such func(hash uint64) bool) (all []uint32, free func() error, err error) {
	words := filterWords(4 * len(s.Pages))
	seen, freeSeen, err := s.store.list(2 * words)
	if err != nil {
		return nil, nil, err
	}
	once, twice := filter(seen[:words]), filter(seen[words:])
	for i := range s.Pages {
		if h := s.Pages[i].hash; h != 0 {
			if once.has(h) {
				twice.add(h)
			}
			once.add(h)
		}
	}
	all, free, err = s.which(func(p *Page) bool { return p.hash != 0 && (twice.has(p.hash) || such(p.hash)) }, byHash)
	return all, free, errors.Join(err, freeSeen())
}

// read hashes these pages, whole or only their pieces, on all CPUs. It reports for each page whether it moved: whether it now has
// another frame, or none. It reports one page at a time.
func (s *scanner) read(which []uint32, whole bool, set func(p *Page, piece, whole uint64, moved bool)) error {
	slices.Sort(which) // in the order of their listing: block by block, by addresses
	parts := make(chan []uint32)
	var workers sync.WaitGroup
	var saying sync.Mutex
	var failed error
	for i := range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			r := reader{seed: s.seed, frames: s.frames, worker: i}
			for part := range parts {
				pieces, wholes, moved, err := s.readPart(&r, part, whole)
				saying.Lock()
				if err != nil {
					failed = err
				} else {
					for i, k := range part {
						set(&s.Pages[k], pieces[i], wholes[i], moved[i])
					}
				}
				saying.Unlock()
			}
		})
	}
	for len(which) > 0 {
		process, several, n := s.Region(&s.Pages[which[0]]).Process, s.Pages[which[0]].several(), 1
		for n < len(which) && n < partPages && s.Region(&s.Pages[which[n]]).Process == process && s.Pages[which[n]].several() == several {
			n++
		}
		parts <- which[:n]
		which = which[n:]
	}
	close(parts)
	workers.Wait()
	return failed
}

// readPart hashes pages of one process, which are either all shared by several processes, or none.
func (s *scanner) readPart(r *reader, part []uint32, whole bool) (pieces, wholes []uint64, moved []bool, err error) {
	first := &s.Pages[part[0]]
	pid, address := s.Processes[s.Region(first).Process].PID, func(i int) uint64 { return s.Address(&s.Pages[part[i]]) }
	switch {
	case !whole:
		if pieces, err = r.pieces(pid, len(part), address, func(i int) uint64 { return s.Pages[part[i]].Frame }); err != nil {
			return nil, nil, nil, err
		}
		wholes = r.full
	case s.ofCache(first):
		if pieces, wholes, err = r.frameContents(len(part), func(i int) uint64 { return s.Pages[part[i]].Frame }); err != nil {
			return nil, nil, nil, err
		}
	case first.several():
		pieces, wholes = r.hashShared(pid, len(part), address)
	default:
		pieces, wholes = r.hash(pid, len(part), true, address)
	}
	moved = make([]bool, len(part))
	if s.ofCache(first) {
		return pieces, wholes, moved, s.leftCache(part, moved)
	}
	pagemap, gone := openKernel(fmt.Sprintf("/proc/%d/pagemap", pid))
	if gone == nil {
		defer pagemap.Close()
	}
	entries := make([]byte, 8*len(part))
	for i := 0; i < len(part); {
		row, got := consecutive(len(part)-i, func(j int) uint64 { return address(i + j) }), 0
		if gone == nil {
			got, _ = pagemap.ReadAt(entries[:8*row], int64(address(i))/PageSize*8)
		}
		for j := range row {
			moved[i+j] = 8*j >= got || binary.NativeEndian.Uint64(entries[8*j:])&(entryPresent|entryFrame) != entryPresent|s.Pages[part[i+j]].Frame
		}
		i += row
	}
	return pieces, wholes, moved, nil
}
