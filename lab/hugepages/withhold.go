//go:build linux

// Package hugepages withholds memory from a guest, as huge pages that nobody uses (the kernel's Documentation/admin-guide/mm/hugetlbpage.rst).
package hugepages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
)

// Tree is the root of the file tree with the kernel's files.
type Tree string

// Host is the tree of this machine.
const Host Tree = "/"

// KindWithheld is the journal's kind for withheld memory; its target is the file with a number of huge pages.
const KindWithheld = "withheld memory"

const (
	forRest   = 2 << 30   // bytes that the host keeps in addition to the instance: for its kernel, Tare, engines and the load
	forGrowth = 1 << 30   // least part of these bytes that is free at first
	step      = 1 << 30   // bytes that Tare asks the kernel for at once, so that an interrupted run stops soon
	nodeRest  = 256 << 20 // bytes that each NUMA node keeps
)

// detailFrom is the key under which a journal entry has the number of pages before.
const detailFrom = "from"

// poolNames are patterns of the kernel's files that hold a number of huge pages, of the host or of a NUMA node.
var poolNames = []string{
	"/sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages",
	"/sys/devices/system/node/node*/hugepages/hugepages-*kB/nr_hugepages",
}

// Undo returns the function that undoes the journal entries of Withhold, for journal.Recover.
func (t Tree) Undo() map[string]journal.Undo {
	return map[string]journal.Undo{KindWithheld: t.giveBack}
}

// Withheld is memory that nobody on the host can use.
type Withheld struct {
	Bytes   int64 // withheld
	Missing int64 // bytes that should also be withheld, but the kernel found too few large pieces
	Left    int64 // bytes that are then available on the host
	changes *journal.Changes
}

// Undo gives the memory back.
func (w *Withheld) Undo(ctx context.Context) error { return w.changes.Undo(ctx) }

// Withhold leaves the host memory for an instance of this many bytes, and 2 GB for everything else, or more if more is in use. The
// rest becomes huge pages that nobody uses, and that the kernel never reclaims. The near NUMA nodes lose memory last. Withhold
// first empties the page cache and writes the journal. A host without memory to spare is an error. On error everything is as
// before; where that fails, Withhold also returns what is left to undo.
func (t Tree) Withhold(ctx context.Context, j *journal.Journal, instance int64, near []int) (*Withheld, error) {
	if _, _, err := t.spare(instance); err != nil {
		return nil, err
	}
	if err := t.emptyCaches(); err != nil {
		return nil, fmt.Errorf("emptying the page cache: %w", err)
	}
	excess, page, err := t.spare(instance) // again: with full caches the kernel underestimates what is available
	if err != nil {
		return nil, err
	}
	pools, err := t.pools(page, excess, near)
	if err != nil {
		return nil, err
	}
	w := &Withheld{changes: journal.NewChanges(j, t.Undo())}
	var entries []journal.Entry
	for _, p := range pools {
		entries = append(entries, journal.Entry{Kind: KindWithheld, Target: p.file, Detail: map[string]string{detailFrom: strconv.FormatInt(p.pages, 10)}})
	}
	if err := w.changes.Announce(entries...); err != nil {
		return nil, err
	}
	if err := t.fill(ctx, w, pools, excess, page); err != nil {
		if uerr := w.Undo(context.WithoutCancel(ctx)); uerr != nil {
			return w, errors.Join(err, uerr)
		}
		return nil, err
	}
	return w, nil
}

// spare returns how many bytes can be withheld, at least a huge page, and the size of a huge page.
func (t Tree) spare(instance int64) (bytes, page int64, err error) {
	m, err := t.memory()
	if err != nil {
		return 0, 0, err
	}
	if bytes = m.excess(instance); bytes < m.page {
		return 0, 0, fmt.Errorf("the host has %.1f GB, and an instance with %.1f GB and everything else need all of it", gb(m.total), gb(instance))
	}
	return bytes, m.page, nil
}

// fill turns memory into huge pages in the pools, in their order.
func (t Tree) fill(ctx context.Context, w *Withheld, pools []pool, excess, page int64) error {
	for _, p := range pools {
		want := min(excess-w.Bytes, p.spare) / page
		got, err := raise(ctx, p.pages, want, step/page, func(n int64) (int64, error) { return t.setPool(p.file, n) }, t.compact)
		w.Bytes += got * page
		if err != nil {
			return err
		}
	}
	m, err := t.memory()
	w.Missing, w.Left = (excess-w.Bytes)/page*page, m.available
	return err
}

// raise raises a number of huge pages by this many, in steps, and returns by how many it rose. The kernel may stop early, so raise
// asks again; where the kernel makes no progress, raise compacts memory once.
func raise(ctx context.Context, from, by, step int64, set func(n int64) (int64, error), compact func() error) (int64, error) {
	at, compacted := from, false
	for at < from+by {
		if err := ctx.Err(); err != nil {
			return at - from, err
		}
		got, err := set(min(at+max(step, 1), from+by))
		if err != nil {
			return at - from, err
		}
		if got <= at {
			if compacted {
				break
			}
			if err := compact(); err != nil {
				return at - from, err
			}
		}
		compacted = got <= at
		at = max(got, at)
	}
	return at - from, nil
}

// setPool asks for a number of huge pages and returns the number that exist.
func (t Tree) setPool(file string, n int64) (int64, error) {
	if err := proc.WriteSetting(file, strconv.FormatInt(n, 10)); err != nil {
		return 0, err
	}
	return number(file)
}

// giveBack undoes an entry of Withhold.
func (t Tree) giveBack(_ context.Context, e journal.Entry) error {
	n, err := strconv.ParseInt(e.Detail[detailFrom], 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("huge pages: %q is not a number of pages", e.Detail[detailFrom])
	}
	// The path is from Tare's own journal, but Tare writes only to a number of huge pages.
	if !slices.ContainsFunc(poolNames, func(p string) bool {
		ok, err := path.Match(filepath.Join(string(t), p), e.Target)
		return err == nil && ok
	}) {
		return fmt.Errorf("huge pages: %q is not a file of the kernel with a number of huge pages", e.Target)
	}
	if _, err := t.setPool(e.Target, n); err != nil {
		return fmt.Errorf("huge pages: %w; echo %d >%s", err, n, e.Target)
	}
	return nil
}

// emptyCaches makes the kernel drop what it can read again.
func (t Tree) emptyCaches() error {
	unix.Sync() // pages that are not on the disk yet would stay
	return proc.WriteSetting(filepath.Join(string(t), "/proc/sys/vm/drop_caches"), "3")
}

// compact makes the kernel defragment free memory.
func (t Tree) compact() error {
	err := proc.WriteSetting(filepath.Join(string(t), "/proc/sys/vm/compact_memory"), "1")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel cannot compact
	}
	return err
}

// memory is the host's memory, in bytes.
type memory struct {
	total, available int64
	huge             int64 // huge pages that exist already, in use or not
	page             int64 // size of a huge page
}

func (t Tree) memory() (m memory, err error) {
	tree := proc.Tree{FS: os.DirFS(string(t))}
	text, err := tree.Read("/proc/meminfo")
	if err != nil {
		return m, err
	}
	return parseMemory(text)
}

func parseMemory(text string) (m memory, err error) {
	of := func(name string) (n int64) {
		if err == nil {
			n, err = kilobytes(proc.Field(text, name))
			if err != nil {
				err = fmt.Errorf("/proc/meminfo: %s: %w", name, err)
			}
		}
		return n
	}
	m.total, m.available = of("MemTotal"), of("MemAvailable")
	if proc.Field(text, "Hugepagesize") == "" {
		return m, errors.New("the kernel has no huge pages (CONFIG_HUGETLBFS), which Tare needs to withhold memory")
	}
	m.page = of("Hugepagesize")
	if proc.Field(text, "Hugetlb") != "" { // Linux 4.20
		m.huge = of("Hugetlb")
	}
	if err == nil && (m.page == 0 || m.huge > m.total || m.available > m.total) {
		err = errors.New("/proc/meminfo: its numbers contradict each other")
	}
	return m, err
}

// excess is the number of bytes that the host has beyond what an instance and everything else need.
func (m memory) excess(instance int64) int64 {
	used := max(m.total-m.huge-m.available, 0)
	return m.total - m.huge - instance - max(forRest, used+forGrowth)
}

// pool is a number of huge pages that the kernel keeps.
type pool struct {
	file  string
	pages int64 // now
	spare int64 // bytes that may still become huge pages
}

// pools are those of the host's NUMA nodes, the near ones last. A host with one node, or a kernel without nodes, has one pool.
func (t Tree) pools(page, excess int64, near []int) ([]pool, error) {
	tree := proc.Tree{FS: os.DirFS(string(t))}
	name := fmt.Sprintf("hugepages-%dkB/nr_hugepages", page>>10)
	dirs, err := fs.Glob(tree.FS, "sys/devices/system/node/node[0-9]*")
	if err != nil {
		return nil, err
	}
	type node struct {
		pool
		near bool
		id   int
	}
	var nodes []node
	for _, dir := range dirs {
		n := node{pool: pool{file: filepath.Join(string(t), dir, "hugepages", name)}}
		if n.id, err = strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node")); err != nil {
			return nil, err
		}
		n.near = slices.Contains(near, n.id)
		text, err := tree.Read("/" + dir + "/meminfo")
		if err != nil {
			return nil, err
		}
		if n.spare, err = parseNode(text); err != nil {
			return nil, fmt.Errorf("/%s/meminfo: %w", dir, err)
		}
		if n.pages, err = number(n.file); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) < 2 {
		p := pool{file: filepath.Join(string(t), "/sys/kernel/mm/hugepages", name), spare: excess}
		p.pages, err = number(p.file)
		return []pool{p}, err
	}
	// The last nodes go first: CPU 0 and most of the kernel's own memory are on the first.
	slices.SortFunc(nodes, func(a, b node) int {
		if a.near != b.near {
			if a.near {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.id, a.id)
	})
	var all []pool
	for _, n := range nodes {
		if n.spare > 0 {
			all = append(all, n.pool)
		}
	}
	return all, nil
}

// parseNode returns how many bytes of a NUMA node may be withheld, from its meminfo: free memory and files.
func parseNode(text string) (spare int64, err error) {
	for line := range strings.Lines(text) {
		// Node 0 MemFree:         4494908 kB
		_, rest, ok := strings.Cut(strings.TrimPrefix(line, "Node "), " ")
		name, value, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !slices.Contains([]string{"MemFree", "Active(file)", "Inactive(file)"}, strings.TrimSpace(name)) {
			continue
		}
		n, err := kilobytes(value)
		if err != nil {
			return 0, err
		}
		spare += n
	}
	return max(spare-nodeRest, 0), nil
}

func kilobytes(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 44)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d kB is less than nothing", n)
	}
	return n << 10, err
}

func number(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

func gb(bytes int64) float64 { return float64(bytes) / (1 << 30) }
