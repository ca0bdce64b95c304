//go:build linux

// Package ksm makes the kernel merge identical pages while guests' memory is measured, and splits them again. The kernel's
// Documentation/admin-guide/mm/ksm.rst explains the files.
package ksm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// folder contains the kernel's files.
const folder = "/sys/kernel/mm/ksm"

// Files that Tare writes.
const (
	advisor   = "advisor_mode" // Linux 6.8
	smartScan = "smart_scan"   // Linux 6.7
	zeroPages = "use_zero_pages"
	pages     = "pages_to_scan"
	sleep     = "sleep_millisecs"
	run       = "run"
)

// Values of run.
const (
	merging    = "1"
	unmergeAll = "2" // the kernel splits every merged page, forgets what it knows of pages, and stops merging
)

// file is one of the kernel's files and the value to write to it.
type file struct{ name, value string }

// settings are what each of notebook.KSMSettings writes, in this order; Undo restores in the reverse order. The kernel refuses any
// value of pages_to_scan while an advisor sets it. The paper's kernel skipped no page, unlike a smart scan, and counted merged zero
// pages in PSS: it had no use_zero_pages.
var settings = map[string][]file{
	notebook.KSMPaper:  {{advisor, "none"}, {smartScan, "0"}, {zeroPages, "0"}, {pages, "500"}, {sleep, "10"}, {run, unmergeAll}},
	notebook.KSMKernel: {{run, unmergeAll}},
}

// Tree is the root of the file tree with the kernel's files.
type Tree string

// Host is the tree of this machine.
const Host Tree = "/"

func (t Tree) path(name string) string { return filepath.Join(string(t), folder, name) }

// number reads a file that contains a number.
func (t Tree) number(name string) (int64, error) {
	text, err := proc.Setting(t.path(name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s says %q; must be a number", t.path(name), text)
	}
	return n, nil
}

// state is the progress of the kernel.
type state struct{ scans, shared, sharing int64 }

func (t Tree) state() (s state, err error) {
	for _, f := range []struct {
		name string
		to   *int64
	}{{"full_scans", &s.scans}, {"pages_shared", &s.shared}, {"pages_sharing", &s.sharing}} {
		if *f.to, err = t.number(f.name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Merging is the kernel at work on merging identical pages.
type Merging struct {
	tree    Tree
	changes *journal.Changes
	own     []byte // a page of this process
	ksmd    int    // the kernel's thread
	began   time.Time
	start   state
	used    time.Duration // CPU time of ksmd before
}

// Merge makes the host's kernel merge identical pages until End, with the setting of notebook.KSMSettings. It records its changes
// in the journal first. A host that already merges pages is an error, because memory measured there was never without merging.
func Merge(j *journal.Journal, setting string) (*Merging, error) { return Host.merge(j, setting) }

func (t Tree) merge(j *journal.Journal, setting string) (*Merging, error) {
	files, ok := settings[setting]
	if !ok {
		return nil, fmt.Errorf("%q: must be %s", setting, strings.Join(notebook.KSMSettings, " or "))
	}
	if err := t.idle(); err != nil {
		return nil, err
	}
	var write []file
	var entries []journal.Entry
	advised := false
	for _, f := range files {
		from, err := proc.Setting(t.path(f.name))
		if errors.Is(err, fs.ErrNotExist) && (f.name == advisor || f.name == smartScan || f.name == zeroPages) {
			continue // an older kernel already does what would be written
		}
		if err != nil {
			return nil, err
		}
		if f.name == advisor {
			advised = from != f.value
		}
		write = append(write, f)
		if f.name != pages || !advised { // otherwise the advisor sets it again when it is restored
			entries = append(entries, journal.Entry{Kind: Kind, Target: t.path(f.name), Detail: map[string]string{detailFrom: from}})
		}
	}
	m := &Merging{tree: t, changes: journal.NewChanges(j, t.Undo())}
	if err := m.changes.Announce(entries...); err != nil {
		return nil, err
	}
	if err := m.begin(write); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
		defer cancel()
		return nil, errors.Join(err, m.End(ctx))
	}
	return m, nil
}

// undoTimeout bounds the undoing of a part.
const undoTimeout = 30 * time.Second

// idle says why pages cannot be merged, or that they are merged already.
func (t Tree) idle() error {
	is, err := proc.Setting(t.path(run))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("this kernel has no KSM (%s does not exist); boot a kernel with CONFIG_KSM, or remove ksm from the study", t.path(run))
	}
	if err != nil {
		return err
	}
	n, err := t.number("pages_shared")
	if err == nil && (is == merging || n > 0) {
		err = fmt.Errorf("KSM is already active on this host (%s says %s, pages_shared %d), so memory without KSM cannot be measured; stop ksmtuned or whatever started it, then: echo %s >%[1]s",
			t.path(run), is, n, unmergeAll)
	}
	return err
}

func (m *Merging) begin(write []file) (err error) {
	for _, f := range write {
		if err := proc.Set(m.tree.path(f.name), f.value); err != nil {
			return err
		}
	}
	// The kernel scans only if some process has mergeable pages; without a scan Settle would wait forever. So there is one
	// mergeable page, unlike any other.
	if m.own, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return fmt.Errorf("a page that may be merged: mmap: %w", err)
	}
	binary.NativeEndian.PutUint64(m.own, rand.Uint64())
	if err := unix.Madvise(m.own, unix.MADV_MERGEABLE); err != nil {
		return fmt.Errorf("a page that may be merged: madvise: %w", err)
	}
	if m.ksmd, err = thread(); err != nil {
		return err
	}
	if m.used, err = proc.Used([]int{m.ksmd}); err != nil {
		return err
	}
	if m.start, err = m.tree.state(); err != nil {
		return err
	}
	m.began = time.Now()
	return proc.Set(m.tree.path(run), merging)
}

// thread finds the kernel's thread that merges. Any process may have its name, but only the kernel's threads are children of
// kthreadd.
func thread() (int, error) {
	const kthreadd = 2
	pids, err := proc.All()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if proc.Name(pid) == "ksmd" {
			if parent, err := proc.Parent(pid); err == nil && parent == kthreadd {
				return pid, nil
			}
		}
	}
	return 0, errors.New("the kernel's thread ksmd, whose CPU time is the cost of merging, is not visible: run tare on the host itself, not in a container")
}

const (
	// pause is the interval between two looks at the kernel's progress. The kernel gives no notice of these files (poll(2)).
	pause = 100 * time.Millisecond
	// The kernel merges no page before its second scan: in the first it learns which pages do not change.
	firstScans = 2
	// For this many scans the merged memory must not have changed by more than this share.
	stillScans = 2
	still      = 0.01
)

// Settle waits until the kernel has scanned all memory twice more and the merged memory has changed by less than 1 %, and reports
// how it went. Where ctx's time is over first, the record says so. An error means that ctx was cancelled, or that somebody else
// changes settings.
func (m *Merging) Settle(ctx context.Context) (*notebook.KSM, error) {
	var base *state // the state that later scans are compared with
	for last := m.start; ; {
		now, err := m.tree.state()
		if err != nil {
			return nil, err
		}
		is, err := proc.Setting(m.tree.path(run))
		if err != nil {
			return nil, err
		}
		if is != merging {
			return nil, fmt.Errorf("something else changes how pages are merged (%s says %q, Tare wrote %s): stop it (for example ksmtuned)", m.tree.path(run), is, merging)
		}
		if now.scans != last.scans && now.scans-m.start.scans >= firstScans { // a scan has just ended
			switch {
			case base == nil || !now.like(*base):
				base = &now
			case now.scans-base.scans >= stillScans:
				return m.record(now, false)
			}
		}
		last = now
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, ctx.Err()
			}
			return m.record(now, true)
		case <-time.After(pause):
		}
	}
}

// like reports whether about as much is merged.
func (s state) like(base state) bool {
	near := func(a, b int64) bool { return float64(max(a, b)-min(a, b)) <= still*float64(max(a, b)) }
	return near(s.shared, base.shared) && near(s.sharing, base.sharing)
}

func (m *Merging) record(s state, unsettled bool) (k *notebook.KSM, err error) {
	k = &notebook.KSM{Shared: s.shared, Sharing: s.sharing, Scans: s.scans - m.start.scans, SettledS: time.Since(m.began).Seconds(), Unsettled: unsettled}
	if k.PagesToScan, err = m.tree.number(pages); err != nil {
		return nil, err
	}
	if k.SleepMS, err = m.tree.number(sleep); err != nil {
		return nil, err
	}
	for name, to := range map[string]*int64{zeroPages: &k.UseZeroPages, "merge_across_nodes": &k.MergeAcrossNodes, "max_page_sharing": &k.MaxPageSharing} {
		// merge_across_nodes exists only on NUMA kernels.
		if *to, err = m.tree.number(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	k.Advisor, err = proc.Setting(m.tree.path(advisor))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if k.Advisor == "none" {
		k.Advisor = ""
	}
	used, err := proc.Used([]int{m.ksmd})
	k.CPUS = (used - m.used).Seconds()
	return k, err
}

// End splits all merged pages and restores the host's settings. A call that failed can be repeated.
func (m *Merging) End(ctx context.Context) error {
	err := m.changes.Undo(ctx)
	if m.own != nil {
		err = errors.Join(err, unix.Munmap(m.own))
		m.own = nil
	}
	return err
}

// Kind is the journal's kind for a setting that was changed; its target is the file.
const Kind = "ksm"

// detailFrom is the key under which an entry keeps what the file said.
const detailFrom = "from"

// Undo returns the functions that undo the journal entries of Merge, for journal.Recover.
func (t Tree) Undo() map[string]journal.Undo {
	return map[string]journal.Undo{Kind: t.putBack}
}

func (t Tree) putBack(ctx context.Context, e journal.Entry) error {
	if !slices.ContainsFunc(settings[notebook.KSMPaper], func(f file) bool { return t.path(f.name) == e.Target }) {
		return fmt.Errorf("%q is not a setting of KSM", e.Target) // the journal is a file, and may have been changed
	}
	from := e.Detail[detailFrom]
	var err error
	if e.Target == t.path(run) {
		err = t.unmerge(ctx)
	}
	if err == nil {
		err = proc.Set(e.Target, from)
	}
	if errors.Is(err, fs.ErrNotExist) { // another kernel
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; echo %s >%s", err, from, e.Target)
	}
	return nil
}

// unmerge makes the kernel split all merged pages, which needs as much memory as merging saved.
func (t Tree) unmerge(ctx context.Context) error {
	if err := proc.Set(t.path(run), unmergeAll); err != nil { // the write returns when the kernel has split all pages
		return fmt.Errorf("merged pages could not be split: %w; free memory for a copy of each, then: echo %s >%s", err, unmergeAll, t.path(run))
	}
	for {
		n, err := t.number("pages_shared")
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d pages are still merged (%s): %w", n, t.path("pages_shared"), ctx.Err())
		case <-time.After(pause):
		}
	}
}
