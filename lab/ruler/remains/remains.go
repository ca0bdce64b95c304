//go:build linux

// Package remains finds state that passes from one run to the next in the same guest: files that an earlier run made in writable
// places, and that a later run found and left unchanged.
//
// It lists the places before and after a run, outside of the measured time, and does not watch during it: a watch would slow down
// the run's opening of files. A run that only checks that a file exists (stat) opens nothing, so a watch on openings would miss it.
// A cold or warm page cache leaves no file.
package remains

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/ruler/empty"
	"tare/notebook"
)

// Limits on what is listed around a run, so that a guest with many files is not slowed down. A place beyond them is not reported.
const (
	mostEntries = 4096 // in each place
	mostDepth   = 32   // folders within folders
)

// Work is the part of a run's order that says where it may leave files.
type Work struct {
	Env     []string
	Dir     string // its working folder
	Scratch string // emptied before each run
}

// Remains are the files that the runs in a guest have left.
type Remains struct {
	Places []string // where to look; nil: the usual places

	left map[string]bool // made by runs that succeeded, and still there
}

// usualPlaces are where programs leave files, in addition to the user's home and the working folder. It omits /dev/shm and /run,
// because on bare metal others may write there.
var usualPlaces = []string{"/tmp", "/var/tmp"}

// entry is a file or folder in a listing.
type entry struct {
	inode          uint64
	changed, wrote unix.Timespec
	size           int64
	regular        bool
}

// Look is the state of the places before a run.
type Look struct {
	of     *Remains
	places []string
	before map[string]entry
	began  unix.Timespec // by the clock of the files' times
}

// Before lists the places before a run. It omits a place with too much content, or that cannot be read, because others may write
// there. It returns nil if the clock cannot be read.
func (r *Remains) Before(w Work) *Look {
	l := &Look{of: r, before: map[string]entry{}}
	for _, place := range r.where(w) {
		there, err := list(place)
		if err != nil {
			continue
		}
		l.places = append(l.places, place)
		maps.Copy(l.before, there)
	}
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &l.began); err != nil {
		return nil
	}
	return l
}

// where lists the places that the work can write to.
func (r *Remains) where(w Work) (places []string) {
	all := r.Places
	if all == nil {
		all = append(slices.Clone(usualPlaces), w.Dir)
		for _, v := range w.Env {
			if home, is := strings.CutPrefix(v, "HOME="); is {
				all = append(all, home)
			}
		}
	}
	inside := func(p, of string) bool { return p == of || strings.HasPrefix(p, of+"/") }
	for _, p := range all {
		p = filepath.Clean(p)
		if !filepath.IsAbs(p) || p == "/" || inside(p, w.Scratch) {
			continue
		}
		var st unix.Statfs_t
		if unix.Statfs(p, &st) != nil || st.Flags&unix.ST_RDONLY != 0 {
			continue // it is missing, or nothing can be left there
		}
		if slices.ContainsFunc(places, func(q string) bool { return inside(p, q) }) {
			continue
		}
		places = append(slices.DeleteFunc(places, func(q string) bool { return inside(q, p) }), p)
	}
	return places
}

// errTooMuch ends a listing.
var errTooMuch = errors.New("more files than are listed")

// list lists the content of a place. It follows no symbolic link there and enters no mount.
func list(place string) (map[string]entry, error) {
	all := map[string]entry{}
	fd, err := unix.Open(place, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = listFolder(fd, place, 0, all)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return nil, err
	}
	return all, nil
}

// listFolder adds the content of a folder, and closes it.
func listFolder(fd int, path string, depth int, all map[string]entry) error {
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	if depth > mostDepth {
		return errTooMuch
	}
	for {
		names, err := dir.Readdirnames(256) // a few: a folder may have millions
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, unix.ENOENT) {
				continue
			} else if err != nil {
				return err
			}
			if len(all) == mostEntries {
				return errTooMuch
			}
			below := filepath.Join(path, name)
			kind := st.Mode & unix.S_IFMT
			all[below] = entry{inode: st.Ino, changed: st.Ctim, wrote: st.Mtim, size: st.Size, regular: kind == unix.S_IFREG}
			if kind != unix.S_IFDIR {
				continue
			}
			inner, err := empty.Open(fd, name, empty.Within)
			if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOENT) {
				continue // something is mounted there, or it is gone
			}
			if err != nil {
				return err
			}
			if err := listFolder(inner, below, depth+1, all); err != nil && !errors.Is(err, unix.ENOENT) { // it was removed while it was read
				return err
			}
		}
	}
}

// After lists the places after the run, and returns what the run found of earlier runs; nil if nothing. A run that did not succeed
// finds and leaves nothing, because it may have ended before it removed what it made. After omits a place that now has too much
// content, or cannot be read.
func (l *Look) After(succeeded bool) *notebook.Found {
	r := l.of
	after := map[string]entry{}
	for _, place := range l.places {
		there, err := list(place)
		if err != nil {
			continue // what earlier runs left there is forgotten
		}
		maps.Copy(after, there)
	}
	if !succeeded {
		return nil
	}
	type file struct { // a name may change, and a removed file's number is reused
		inode uint64
		wrote unix.Timespec
	}
	files := map[file]bool{}
	for _, e := range l.before {
		files[file{e.inode, e.wrote}] = true
	}
	made := map[string]bool{} // made by this run, and not just moved, like a log
	for path, e := range after {
		if _, was := l.before[path]; !was && !files[file{e.inode, e.wrote}] {
			made[path] = true
		}
	}
	var found []string
	for path := range r.left {
		was, now := l.before[path], after[path]
		if now.regular && was == now && earlier(was.changed, l.began) && !r.again(path, made) {
			found = append(found, strings.ToValidUTF8(path, "?"))
		}
	}
	if r.left == nil {
		r.left = map[string]bool{}
	}
	maps.Copy(r.left, made)
	maps.DeleteFunc(r.left, func(path string, _ bool) bool { _, there := after[path]; return !there })
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return &notebook.Found{Files: slices.Clone(found[:min(len(found), notebook.MostFound)]), N: len(found)}
}

// earlier reports whether a file's time is before the beginning of a run. Within one tick of the kernel's clock a rewritten file
// keeps its time, so nothing can be said about it.
func earlier(t, began unix.Timespec) bool {
	return t.Sec < began.Sec || t.Sec == began.Sec && t.Nsec < began.Nsec
}

// again reports whether a run made another file instead of one that an earlier run had made, or of a folder around it. Its name
// begins alike or has the same length, like the names of temporary files.
func (r *Remains) again(path string, made map[string]bool) bool {
	for r.left[path] {
		dir, name := filepath.Split(path)
		for other := range made {
			d, n := filepath.Split(other)
			if d == dir && (len(n) == len(name) || first(n) == first(name)) {
				return true
			}
		}
		path = filepath.Clean(dir)
	}
	return false
}

// first is the first character of a name; all digits are equal.
func first(name string) byte {
	if '0' <= name[0] && name[0] <= '9' {
		return '0'
	}
	return name[0]
}
