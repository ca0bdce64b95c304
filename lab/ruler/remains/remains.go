//go:build linux

// Package remains finds state that passes from one run to the next in the same guest: files that an earlier run made where it may write,
// and that a later run found and left as they were.
//
// It lists the places before and after a run, outside of the measured time, and watches nothing meanwhile: a watch would slow down what the
// run opens. A run that asks for a file's being there (stat) opens nothing, so its openings would not show it. A cold or warm page
// cache leaves no file.
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

// Bounds on what is looked at around a run, so that a guest with many files is not slowed down. Of a place beyond them nothing is said.
const (
	mostEntries = 4096 // in each place
	mostDepth   = 32   // folders within folders
)

// Work is what of a run's order says where it may leave files.
type Work struct {
	Env     []string
	Dir     string // its working folder
	Scratch string // which is emptied before each run
}

// Remains are what the runs in a guest have left.
type Remains struct {
	Places []string // where it is looked; nil: the usual ones

	left map[string]bool // made by runs that succeeded, and still there
}

// usualPlaces are where programs leave files, in addition to the user's home and the working folder. /dev/shm and /run are left out: on
// bare metal others may write there.
var usualPlaces = []string{"/tmp", "/var/tmp"}

// entry is a file or a folder as it was found.
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
	began  unix.Timespec // by the clock that files are stamped with
}

// Before looks at the places before a run. One with too much to look at, or that cannot be read, is left out: others may write there meanwhile. It
// returns nil where the clock cannot be read.
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

// where are the places that the work can write to.
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
			continue // it is not there, or nothing can be left there
		}
		if slices.ContainsFunc(places, func(q string) bool { return inside(p, q) }) {
			continue
		}
		places = append(slices.DeleteFunc(places, func(q string) bool { return inside(q, p) }), p)
	}
	return places
}

// errTooMuch ends a listing.
var errTooMuch = errors.New("more files than are looked at")

// list lists what is in a place. It follows no symbolic link there and enters no mount.
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

// listFolder adds what is in a folder, which it closes.
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
				continue // something is mounted there, or it has gone
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

// After looks at the places after the run, and gives what it found of earlier runs; nil: nothing. A run that did not succeed finds and leaves
// nothing: it may have ended before it removed what it made. A place that has too much to look at by now, or cannot be read, is left out.
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
	type file struct { // a name may change; a removed file's number is given to another
		inode uint64
		wrote unix.Timespec
	}
	files := map[file]bool{}
	for _, e := range l.before {
		files[file{e.inode, e.wrote}] = true
	}
	made := map[string]bool{} // by this run, and not only moved, as a log is
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

// earlier says whether a file's time is before that at which a run began: within one tick of the kernel's clock a file that is written again keeps
// its time, and nothing can be said of it.
func earlier(t, began unix.Timespec) bool {
	return t.Sec < began.Sec || t.Sec == began.Sec && t.Nsec < began.Nsec
}

// again says whether a run made another file in place of one that an earlier run had made, or of a folder around it: under a name that
// begins alike or is as long, as names of temporary files are.
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

// first is how a name begins; all digits are one.
func first(name string) byte {
	if '0' <= name[0] && name[0] <= '9' {
		return '0'
	}
	return name[0]
}
