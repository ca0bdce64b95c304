//go:build linux

package remains

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// nextTick waits until the clock of files' times is later than any time so far. A late tick sets that clock to the last whole tick,
// and the kernel may have stamped a file with a finer clock since. So it waits for two ticks.
func nextTick(t *testing.T) {
	t.Helper()
	var was, now unix.Timespec
	for ticks := 0; ticks < 2; was = now {
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			t.Fatal(err)
		}
		if was != (unix.Timespec{}) && now != was {
			ticks++
		}
	}
}

// run runs a command as the ruler does.
func run(t *testing.T, r *Remains, w Work, script string) *notebook.Found {
	t.Helper()
	nextTick(t)
	look := r.Before(w)
	if look == nil {
		t.Fatal("it does not look")
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = w.Dir
	return look.After(cmd.Run() == nil)
}

// What a run leaves and later ones find is named. What a run writes anew, what only looks alike, and a warm cache are no state.
func TestWhatARunLeavesAndLaterOnesFind(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		found  string // by the second run and those after it
	}{
		"nothing is left":                      {"exit 0", ""},
		"a stamp is asked for":                 {"if [ -e $P/stamp ]; then exit 0; fi; touch $P/stamp", "stamp"},
		"a stamp next to a log":                {"echo x >>$P/started.log; [ -e $P/stamp ] || touch $P/stamp", "stamp"},
		"a stamp next to a temporary file":     {"mktemp $P/.tmp.XXXXXX; [ -e $P/stamp ] || touch $P/stamp", "stamp"},
		"a stamp is compared":                  {"if [ $P/stamp -nt /etc/hostname ]; then exit 0; fi; touch $P/stamp", "stamp"},
		"a result is read":                     {"cat $P/result 2>/dev/null || echo 42 >$P/result", "result"},
		"a stamp takes a removed file's place": {"echo x >$P/first; rm $P/first; [ -e $P/stamp ] || touch $P/stamp; echo y >$P/out", "stamp"},
		"a program is compiled once":           {"[ -x $P/prog ] || cp /bin/true $P/prog; $P/prog", "prog"},
		"a cache in a folder":                  {"mkdir -p $P/c; [ -s $P/c/object ] || echo x >$P/c/object", "c/object"},
		"it builds what has changed":           {"[ $P/out -nt /etc/hostname ] || { echo x >$P/out.new; mv $P/out.new $P/out; }", "out"},
		"output is written anew":               {"echo x >$P/out; cat $P/out", ""},
		"output is written anew in folders":    {"mkdir -p $P/a/b; echo x >$P/a/b/out; ln -sf out $P/a/b/link", ""},
		"output is replaced":                   {"echo x >$P/out.new; mv $P/out.new $P/out; cat $P/out", ""},
		"output is copied":                     {"cp -r /etc/default $P; cp -rp /etc/hostname $P/name", ""},
		"the same build":                       {"mkdir -p $P/b; cp /bin/true $P/b/prog; $P/b/prog", ""},
		"a log grows":                          {"echo x >>$P/log", ""},
		"a log is rotated each time":           {"mv $P/log.1 $P/log.2; mv $P/log $P/log.1; echo x >$P/log", ""},
		"a log is rotated at times":            {"echo x >>$P/log; if [ $(wc -l <$P/log) = 2 ]; then mv $P/log $P/log.1; echo x >$P/log; fi", ""},
		"a process id is noted":                {"cat $P/pid 2>/dev/null; echo $$ >$P/pid", ""},
		"temporary files stay":                 {"mktemp $P/tmp.XXXXXX", ""},
		"temporary folders stay":               {"d=$(mktemp -d $P/tmp.XXXXXX); echo x >$d/file", ""},
		"files by process id stay":             {"echo x >$P/$$.txt", ""},
		"a folder that is always asked for":    {"mkdir -p $P/cache", ""},
		"it cleans up":                         {"echo x >$P/a; cat $P/a; rm $P/a", ""},
		"it begins by cleaning up":             {"rm -rf $P/a; mkdir $P/a; echo x >$P/a/b; cat $P/a/b", ""},
		"the cache is warm":                    {"cat /bin/sh >/dev/null", ""},
		"it is in the scratch folder":          {"[ -e stamp ] || touch stamp", ""},
	} {
		t.Run(name, func(t *testing.T) {
			place, scratch := t.TempDir(), t.TempDir()
			r := Remains{Places: []string{place, scratch}}
			for i := range 4 {
				found := run(t, &r, Work{Scratch: scratch, Dir: scratch}, "P="+place+"; "+c.script)
				got, want := "", c.found
				if found != nil {
					got = strings.TrimPrefix(strings.Join(found.Files, " "), place+"/")
				}
				if i == 0 {
					want = ""
				}
				if got != want || found != nil && found.N != 1 {
					t.Errorf("run %d found %q (%+v), want %q", i+1, got, found, want)
				}
			}
		})
	}
}

// A run that failed leaves and finds nothing, for it may not have come to removing it.
func TestAFailedRunLeavesNothing(t *testing.T) {
	place := t.TempDir()
	r := Remains{Places: []string{place}}
	for i, script := range []string{"touch P/stamp; exit 1", "exit 1", "touch P/other", "true", "exit 1"} {
		found := run(t, &r, Work{Dir: place, Scratch: "/nosuch"}, strings.ReplaceAll(script, "P", place))
		if want := i == 3; (found != nil) != want || want && !slices.Equal(found.Files, []string{place + "/other"}) {
			t.Errorf("run %d: %+v", i+1, found)
		}
	}
}

// A file whose time may be that of the run itself is not named: one tick is longer than a short run.
func TestWithinATickNothingIsSaid(t *testing.T) {
	place := t.TempDir()
	r := Remains{Places: []string{place}}
	w := Work{Scratch: "/nosuch"}
	r.Before(w).After(true)
	look := r.Before(w)
	file := filepath.Join(place, "out")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look.After(true)
	look = r.Before(w)
	look.began = look.before[file].changed // the run begins in the tick in which the last one wrote
	if found := look.After(true); found != nil {
		t.Errorf("%+v", found)
	}
	nextTick(t)
	if found := r.Before(w).After(true); found == nil {
		t.Error("a tick later it is not found")
	}
}

// Others may write to a place during a run, until it has too much content, or remove it. What is left elsewhere is found anyway.
func TestAPlaceThatIsLostIsNotAllOfThem(t *testing.T) {
	for name, lose := range map[string]func(place string) error{
		"it has too much to look at": func(place string) error { return os.MkdirAll(place+strings.Repeat("/d", mostDepth+2), 0o700) },
		"it is removed":              os.RemoveAll,
	} {
		place, other := t.TempDir(), t.TempDir()
		r := Remains{Places: []string{other, place}}
		w := Work{Scratch: "/nosuch"}
		look := r.Before(w)
		if err := errors.Join(os.WriteFile(place+"/stamp", nil, 0o600), lose(other)); err != nil {
			t.Fatal(err)
		}
		look.After(true)
		nextTick(t)
		if found := r.Before(w).After(true); found == nil || found.N != 1 || found.Files[0] != place+"/stamp" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// What is looked at has bounds, in number and in depth, and links and mounts lead nowhere else.
func TestWhatIsLookedAtIsBounded(t *testing.T) {
	w := Work{Scratch: "/nosuch"}
	for name, fill := range map[string]func(place string) error{
		"many": func(place string) error {
			for i := range mostEntries + 1 {
				if err := os.Mkdir(fmt.Sprint(place, "/", i), 0o700); err != nil {
					return err
				}
			}
			return nil
		},
		"deep": func(place string) error { return os.MkdirAll(place+strings.Repeat("/d", mostDepth+2), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			place := t.TempDir()
			r := Remains{Places: []string{place}}
			look := r.Before(w)
			if err := fill(place); err != nil {
				t.Fatal(err)
			}
			if found := look.After(true); found != nil {
				t.Errorf("%+v", found)
			}
			if look := r.Before(w); look == nil || len(look.places) != 0 {
				t.Errorf("it looks at more than it may: %+v", look)
			}
		})
	}
	place, other := t.TempDir(), t.TempDir()
	for _, err := range []error{os.Symlink(other, place+"/link"), os.Symlink("loop", place+"/loop"), unix.Mkfifo(place+"/fifo", 0o600), os.WriteFile(other+"/file", nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := list(place)
	for _, none := range []string{place + "/nosuch", other + "/file"} {
		if there, err := list(none); err != nil || len(there) > 0 {
			t.Errorf("%s: %v, %v", none, there, err)
		}
	}
	if len(all) != 3 || err != nil {
		t.Errorf("%v: %v", all, err)
	}
}

// Places are listed once each, and never the root or what is emptied anyway.
func TestPlaces(t *testing.T) {
	home := t.TempDir()
	r := Remains{}
	got := r.where(Work{Env: []string{"A=b", "HOME=" + home}, Dir: home + "/work", Scratch: "/tmp/none"})
	if len(got) == 0 || got[0] != "/tmp" {
		t.Errorf("%q", got)
	}
	for i, p := range got {
		for _, q := range got[i+1:] {
			if p == "/" || strings.HasPrefix(q+"/", p+"/") || strings.HasPrefix(p+"/", q+"/") {
				t.Errorf("%q has %s and %s", got, p, q)
			}
		}
	}
	for _, w := range []Work{{Dir: "/"}, {Dir: "/tmp", Scratch: "/tmp"}, {Dir: "/nosuch"}, {Dir: "relative"}} {
		if got := (&Remains{Places: []string{w.Dir}}).where(w); got != nil {
			t.Errorf("%+v: %q", w, got)
		}
	}
}
