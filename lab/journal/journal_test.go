//go:build linux

package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/lab/proc/proctest"
	"tare/notebook/durable"
)

// TestMain is also the program that records real changes and then waits to be killed.
func TestMain(m *testing.M) {
	if state := os.Getenv("TARE_TEST_CHANGE"); state != "" {
		if err := change(state); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// testContext ends before the test would be given up.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, state string) *Journal {
	t.Helper()
	j, err := Open(state)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func record(t *testing.T, j *Journal, e Entry) int {
	t.Helper()
	id, err := j.record(e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// journals lists the journal files.
func journals(t *testing.T, state string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, journalFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// abandon leaves a journal as a death of its process does: open changes in the file, and nobody who locks it.
func abandon(t *testing.T, state string, entries ...Entry) string {
	t.Helper()
	j := open(t, state)
	for _, e := range entries {
		record(t, j, e)
	}
	path := j.file.Name()
	if err := j.Close(); err == nil {
		t.Fatal("Close with open changes says nothing of them")
	}
	return path
}

func TestJournalThatIsDoneLeavesNothing(t *testing.T) {
	state := t.TempDir()
	j := open(t, state)
	a := record(t, j, Entry{Kind: "x", Target: "a"})
	b := record(t, j, Entry{Kind: "x", Target: "b", Detail: map[string]string{"k": "v"}})
	if a == b {
		t.Fatalf("two changes have the id %d", a)
	}
	for _, id := range []int{a, b} {
		if err := j.done(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.done(a); err == nil {
		t.Error("Done twice is not an error")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if _, err := j.record(Entry{Kind: "x", Target: "c"}); err == nil {
		t.Error("a closed journal records")
	}
	if files := journals(t, state); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

// recorder is a journal's file that says what was asked of it, and whose Sync can fail.
type recorder struct {
	*os.File
	did    *[]string
	broken error
}

func (r *recorder) WriteAt(b []byte, at int64) (int, error) {
	*r.did = append(*r.did, "write")
	return r.File.WriteAt(b, at)
}

func (r *recorder) Sync() error {
	*r.did = append(*r.did, "sync")
	return errors.Join(r.broken, r.File.Sync())
}

// A change is on the disk before it is made, and what has not reached the disk is not made; that it is undone is written only
// afterwards.
func TestTheRecordIsSyncedBeforeTheChange(t *testing.T) {
	j := open(t, t.TempDir())
	var did []string
	r := &recorder{File: j.file, did: &did}
	var err error
	if j.lines, err = durable.NewLines(r, journalLimit); err != nil {
		t.Fatal(err)
	}
	c := NewChanges(j, map[string]Undo{"x": func(context.Context, Entry) error { did = append(did, "undo"); return nil }})
	change := func() error {
		if err := c.Announce(Entry{Kind: "x", Target: "a"}, Entry{Kind: "x", Target: "b"}); err != nil {
			return err
		}
		did = append(did, "change")
		return nil
	}
	if err := errors.Join(change(), c.Undo(t.Context())); err != nil {
		t.Fatal(err)
	}
	if want := []string{"write", "sync", "change", "undo", "undo", "write", "sync"}; !slices.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
	did, r.broken = nil, syscall.EIO
	if err := change(); !errors.Is(err, syscall.EIO) || slices.Contains(did, "change") {
		t.Errorf("on a disk that fails: %v, and it did %q", err, did)
	}
	j.Close()
}

func TestRecordIsOnDiskWhenItReturns(t *testing.T) {
	state := t.TempDir()
	j := open(t, state)
	id := record(t, j, Entry{Kind: "x", Target: "a", Detail: map[string]string{"k": "v"}})
	b, err := os.ReadFile(journals(t, state)[0])
	if err != nil {
		t.Fatal(err)
	}
	head, entries, err := parseJournal(b)
	if err != nil || len(entries) != 1 || entries[0].id != id || entries[0].Target != "a" || entries[0].Detail["k"] != "v" {
		t.Errorf("parseJournal = %+v, %v", entries, err)
	}
	if head.PID != os.Getpid() || head.Boot == "" {
		t.Errorf("head %+v", head)
	}
	if err := errors.Join(j.done(id), j.Close()); err != nil {
		t.Fatal(err)
	}
}

// What is recorded at once is there as if it had been one by one, or not at all.
func TestRecordSeveral(t *testing.T) {
	state := t.TempDir()
	j := open(t, state)
	first := Entry{Kind: "first", Target: "a"}
	if _, err := j.record(first, Entry{Kind: "", Target: state}); err == nil {
		t.Error("a change of no kind was recorded")
	}
	id, err := j.record(first, Entry{Kind: "second", Target: "b"})
	if err != nil || id != 1 {
		t.Fatalf("id %d, %v; want the first", id, err)
	}
	if err := j.done(id, id+2); err == nil {
		t.Error("a change that is not open was done")
	}
	text, err := os.ReadFile(j.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, open, err := parseJournal(text); err != nil || len(open) != 2 || open[1].id != 2 || open[1].Kind != "second" {
		t.Errorf("open %+v, %v; want both", open, err)
	}
	if err := errors.Join(j.done(id, id+1), j.Close()); err != nil {
		t.Error(err)
	}
}

func TestRecordRefusesWhatNobodyCouldUndo(t *testing.T) {
	j := open(t, t.TempDir())
	for _, e := range []Entry{{Kind: "", Target: "x"}, {Kind: "x", Target: ""}, {Kind: "x", Target: "st\xffx"}, {Kind: "x", Target: "x", Detail: map[string]string{"folder": "st\xffx"}}} {
		if _, err := j.record(e); err == nil {
			t.Errorf("Record accepts %+v", e)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	state := t.TempDir()
	j := open(t, state)
	id := record(t, j, Entry{Kind: "x", Target: "a"})
	undone, err := Recover(testContext(t), state, map[string]Undo{"x": func(context.Context, Entry) error {
		t.Error("undone while its process lives")
		return nil
	}})
	if err != nil || len(undone) > 0 {
		t.Errorf("Recover = %v, %v", undone, err)
	}
	if err := errors.Join(j.done(id), j.Close()); err != nil {
		t.Fatal(err)
	}
}

// What was recorded last is undone first, whatever the clock of the files was set to in between.
func TestRecoverUndoesTheNewestJournalFirst(t *testing.T) {
	state := t.TempDir()
	var files []string
	for _, target := range []string{"1", "2", "3"} {
		files = append(files, abandon(t, state, Entry{Kind: "x", Target: target}))
	}
	for i, file := range files {
		at := time.Now().Add(-time.Duration(i) * time.Hour) // the later, the older it looks
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	_, err := Recover(testContext(t), state, map[string]Undo{"x": func(_ context.Context, e Entry) error {
		order = append(order, e.Target)
		return nil
	}})
	if want := []string{"3", "2", "1"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("undone %v, %v, want %v", order, err, want)
	}
}

func TestRecoverUndoesInReverse(t *testing.T) {
	state := t.TempDir()
	abandon(t, state, Entry{Kind: "x", Target: "1"}, Entry{Kind: "x", Target: "2"}, Entry{Kind: "x", Target: "3"})
	var order []string
	undone, err := Recover(testContext(t), state, map[string]Undo{"x": func(_ context.Context, e Entry) error {
		order = append(order, e.Target)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"3", "2", "1"}; !slices.Equal(order, want) || len(undone) != 3 {
		t.Errorf("undone %v, %v, want %v", order, undone, want)
	}
	if files := journals(t, state); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
	if undone, err := Recover(testContext(t), state, nil); err != nil || len(undone) > 0 {
		t.Errorf("the second Recover = %v, %v; it must find nothing", undone, err)
	}
}

func TestRecoverWithoutState(t *testing.T) {
	if undone, err := Recover(testContext(t), filepath.Join(t.TempDir(), "none"), nil); err != nil || undone != nil {
		t.Errorf("Recover = %v, %v", undone, err)
	}
}

func TestRecoverKeepsWhatFails(t *testing.T) {
	state := t.TempDir()
	abandon(t, state, Entry{Kind: "x", Target: "good"}, Entry{Kind: "x", Target: "bad"}, Entry{Kind: "future", Target: "strange"})
	fail := true
	undo := map[string]Undo{"x": func(_ context.Context, e Entry) error {
		if fail && e.Target == "bad" {
			return errors.New("it does not want to")
		}
		return nil
	}}
	undone, err := Recover(testContext(t), state, undo)
	if len(undone) != 1 || undone[0].Target != "good" {
		t.Errorf("undone %v", undone)
	}
	for _, want := range []string{"bad", "does not want", "strange", "future"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not have %q", err, want)
		}
	}
	fail = false
	undo["future"] = func(context.Context, Entry) error { return nil }
	undone, err = Recover(testContext(t), state, undo)
	if err != nil || len(undone) != 2 || undone[0].Target != "strange" || undone[1].Target != "bad" {
		t.Errorf("Recover again = %v, %v", undone, err)
	}
	if files := journals(t, state); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

func TestRecoverATornJournal(t *testing.T) {
	state := t.TempDir()
	path := abandon(t, state, Entry{Kind: "x", Target: "a"}, Entry{Kind: "x", Target: "b"})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	// Torn anywhere in the last line, b was never recorded; a failure in between keeps the file readable.
	for cut := last; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		fail := errors.New("not now")
		var got []string
		undo := map[string]Undo{"x": func(_ context.Context, e Entry) error { got = append(got, e.Target); return fail }}
		if _, err := Recover(testContext(t), state, undo); !errors.Is(err, fail) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		fail = nil
		if _, err := Recover(testContext(t), state, undo); err != nil || !slices.Equal(got, []string{"a", "a"}) {
			t.Fatalf("cut at %d: undone %v, %v", cut, got, err)
		}
		if files := journals(t, state); len(files) > 0 {
			t.Fatalf("cut at %d: left %v", cut, files)
		}
	}
}

// A torn end that is longer than what Recover writes in its place must not stay behind it.
func TestRecoverWritesOverATornEnd(t *testing.T) {
	state := t.TempDir()
	path := abandon(t, state, Entry{Kind: "x", Target: "stays"}, Entry{Kind: "x", Target: "goes"}, Entry{Kind: "x", Target: strings.Repeat("torn", 100)})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-2], 0o600); err != nil {
		t.Fatal(err)
	}
	no := errors.New("not now")
	undone, err := Recover(testContext(t), state, map[string]Undo{"x": func(_ context.Context, e Entry) error {
		if e.Target == "stays" {
			return no
		}
		return nil
	}})
	if len(undone) != 1 || undone[0].Target != "goes" || !errors.Is(err, no) {
		t.Errorf("Recover = %v, %v", undone, err)
	}
	undone, err = Recover(testContext(t), state, map[string]Undo{"x": func(context.Context, Entry) error { return nil }})
	if err != nil || len(undone) != 1 || undone[0].Target != "stays" {
		t.Errorf("Recover again = %v, %v", undone, err)
	}
}

func TestRecoverADamagedJournal(t *testing.T) {
	state := t.TempDir()
	path := abandon(t, state, Entry{Kind: "x", Target: "a"})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, "rubbish\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	undone, err := Recover(testContext(t), state, map[string]Undo{"x": func(context.Context, Entry) error { return nil }})
	if len(undone) != 1 || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("Recover = %v, %v; want a undone, and an error that names the file and line 3", undone, err)
	}
	if len(journals(t, state)) != 1 {
		t.Error("the damaged journal is gone")
	}
}

func TestRecoverStopsWhenTold(t *testing.T) {
	state := t.TempDir()
	abandon(t, state, Entry{Kind: "x", Target: "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	undone, err := Recover(ctx, state, map[string]Undo{"x": func(context.Context, Entry) error { return nil }})
	if len(undone) > 0 || !errors.Is(err, context.Canceled) || len(journals(t, state)) != 1 {
		t.Errorf("Recover = %v, %v with %d journals", undone, err, len(journals(t, state)))
	}
}

// After the host was started anew only what survives that is undone: everything else is the new boot's. A process of the same
// number and start time is another's, and a setting has the value that this boot gave it.
func TestRecoverAfterReboot(t *testing.T) {
	state := t.TempDir()
	sleep := proctest.Start(t, "sleep", "60")
	process, err := ProcessEntry(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	folder := Entry{Kind: "folder", Target: "a"}
	path := abandon(t, state, process, folder, Entry{Kind: "setting", Target: "b"}, Entry{Kind: "of another version", Target: "c"})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), boot, "another", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []string
	ask := func(_ context.Context, e Entry) error { asked = append(asked, e.Kind); return nil }
	undo := map[string]Undo{"folder": ask, "setting": ask, KindProcess: func(ctx context.Context, e Entry) error { return KillProcess(ctx, e.Target) }}
	undone, err := Recover(testContext(t), state, undo, "folder")
	if err != nil || len(undone) != 1 || undone[0].Kind != "folder" || !slices.Equal(asked, []string{"folder"}) {
		t.Errorf("Recover = %v, %v; asked for %v", undone, err, asked)
	}
	if err := sleep.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process of this boot was killed: %v", err)
	}
	if left := journals(t, state); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// In this boot's journal everything is undone, in reverse.
	asked = nil
	abandon(t, state, folder, Entry{Kind: "setting", Target: "b"})
	if undone, err := Recover(testContext(t), state, undo, "folder"); err != nil || len(undone) != 2 || !slices.Equal(asked, []string{"setting", "folder"}) {
		t.Errorf("in this boot: Recover = %v, %v; asked for %v", undone, err, asked)
	}
}

// An undo is told the state folder by whoever undoes, whatever the journal says of it.
func TestUndoKnowsTheStateFolder(t *testing.T) {
	real := t.TempDir()
	state := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, state); err != nil {
		t.Fatal(err)
	}
	var told []string
	undo := map[string]Undo{"x": func(_ context.Context, e Entry) error { told = append(told, e.State); return nil }}
	path := abandon(t, state, Entry{Kind: "x", Target: "a", State: "/recorded"})
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), "/recorded") {
		t.Fatalf("the journal says %s, %v", b, err)
	}
	forged := strings.Replace(string(b), `"target":"a"`, `"target":"a","State":"/forged","state":"/forged"`, 1)
	if err := os.WriteFile(path, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(testContext(t), state, undo); err != nil {
		t.Fatal(err)
	}
	j := open(t, state)
	c := NewChanges(j, undo)
	if err := errors.Join(c.Announce(Entry{Kind: "x", Target: "b", State: "/forged"}), c.Undo(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	if want := []string{real, real}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A journal that somebody else could have written is not undone, and stays.
func TestForeignJournals(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to give files away")
	const nobody = 65534
	elsewhere := filepath.Join(t.TempDir(), "1-1.jsonl")
	line := `{"op":"head","format":1,"pid":999999}` + "\n" + `{"op":"open","id":1,"entry":{"kind":"x","target":"a"}}` + "\n"
	if err := os.WriteFile(elsewhere, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(state, file string) error{
		"somebody's state folder":   func(state, _ string) error { return os.Chown(state, nobody, nobody) },
		"a state folder for all":    func(state, _ string) error { return os.Chmod(state, 0o777) },
		"somebody's journal folder": func(_, file string) error { return os.Chown(filepath.Dir(file), nobody, nobody) },
		"somebody's journal":        func(_, file string) error { return os.Chown(file, nobody, nobody) },
		"a journal for all":         func(_, file string) error { return os.Chmod(file, 0o666) },
		"a link":                    func(_, file string) error { return errors.Join(os.Remove(file), os.Symlink(elsewhere, file)) },
		"a second name":             func(_, file string) error { return errors.Join(os.Remove(file), os.Link(elsewhere, file)) },
		"a FIFO":                    func(_, file string) error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)) },
	} {
		state := t.TempDir()
		file := abandon(t, state, Entry{Kind: "x", Target: "a"})
		if err := spoil(state, file); err != nil {
			t.Fatal(err)
		}
		undone, err := Recover(testContext(t), state, map[string]Undo{"x": func(context.Context, Entry) error {
			t.Errorf("%s: it was undone", name)
			return nil
		}})
		if err == nil || len(undone) > 0 {
			t.Errorf("%s: Recover = %v, %v", name, undone, err)
		}
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s: the journal: %v", name, err)
		}
		if b, err := os.ReadFile(elsewhere); err != nil || string(b) != line {
			t.Errorf("%s: the file elsewhere holds %q, %v", name, b, err)
		}
	}
}

// Where all that could not be undone lacks something that is not there, the error says that; what else fails comes first.
func TestRecoverWithoutAnEngine(t *testing.T) {
	state := t.TempDir()
	path := abandon(t, state, Entry{Kind: "engine", Target: "a"}, Entry{Kind: "x", Target: "b"})
	works := true
	undo := map[string]Undo{
		"engine": func(context.Context, Entry) error { return fmt.Errorf("no answer: %w", ErrUnreachable) },
		"x": func(context.Context, Entry) error {
			if works {
				return nil
			}
			return errors.New("it is stuck")
		},
	}
	undone, err := Recover(testContext(t), state, undo)
	if len(undone) != 1 || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "engine a") {
		t.Errorf("Recover = %v, %v", undone, err)
	}
	works = false
	abandon(t, state, Entry{Kind: "x", Target: "c"})
	if _, err := Recover(testContext(t), state, undo); err == nil || errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "engine a") || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("with another that is stuck: %v", err)
	}
	works = true
	undo["engine"] = undo["x"]
	if _, err := Recover(testContext(t), state, undo); err != nil || len(journals(t, state)) > 0 {
		t.Errorf("with the engine back: %v", err)
	}
}

// Whoever opens and whoever recovers at the same time must not get into each other's way.
func TestOpenWhileOthersRecover(t *testing.T) {
	state := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			for ctx.Err() == nil {
				if undone, err := Recover(context.Background(), state, nil); err != nil || len(undone) > 0 {
					failed <- fmt.Errorf("Recover = %v, %w", undone, err)
					return
				}
			}
			failed <- nil
		}()
	}
	for range 50 {
		j := open(t, state)
		id := record(t, j, Entry{Kind: "x", Target: "a"})
		// One that a Recover took for a dead process's may be there too, until that Recover has removed it.
		if files := journals(t, state); !slices.Contains(files, j.file.Name()) {
			t.Errorf("%s is not among %q", j.file.Name(), files)
		}
		if err := errors.Join(j.done(id), j.Close()); err != nil {
			t.Error(err)
		}
	}
	stop()
	for range 2 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if files := journals(t, state); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

// change is what the killed process does: it records and makes every kind of change, says so, and waits.
func change(state string) error {
	j, err := Open(state)
	if err != nil {
		return err
	}
	dir := filepath.Join(state, "guests", "g1")
	group := os.Getenv("TARE_TEST_CGROUP")
	if _, err := j.record(Entry{Kind: "dir", Target: dir}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		return err
	}
	if _, err := j.record(Entry{Kind: "mount", Target: dir + "/root"}); err != nil {
		return err
	}
	if err := unix.Mount("tare-test", dir+"/root", "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/root/file", []byte("x"), 0o644); err != nil {
		return err
	}
	var inside, alone *exec.Cmd
	if group != "" {
		if _, err := j.record(Entry{Kind: "cgroup", Target: group}); err != nil {
			return err
		}
		if err := os.MkdirAll(group+"/below", 0o755); err != nil {
			return err
		}
		inside = exec.Command("sleep", "600")
		if err := inside.Start(); err != nil {
			return err
		}
		if err := os.WriteFile(group+"/below/cgroup.procs", fmt.Append(nil, inside.Process.Pid), 0); err != nil {
			return err
		}
	}
	// Busy on the mount, so that the order of undoing matters.
	alone = exec.Command("sleep", "600")
	alone.Dir = dir + "/root"
	if err := alone.Start(); err != nil {
		return err
	}
	e, err := ProcessEntry(alone.Process.Pid)
	if err != nil {
		return err
	}
	if _, err := j.record(e); err != nil {
		return err
	}
	fmt.Println("changed", alone.Process.Pid)
	select {}
}

func TestRecoverAfterKill(t *testing.T) {
	require.Root(t)
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var groups []string // one run for each version of cgroups here
	for _, top := range []string{cgroupTop(t, "cgroup"), cgroupTop(t, "cgroup2")} {
		if top != "" {
			groups = append(groups, filepath.Join(top, fmt.Sprintf("tare-test-%d", os.Getpid())))
		}
	}
	require.That(t, len(groups) > 0, "a mounted cgroup hierarchy")
	for _, group := range groups {
		t.Run(filepath.Base(filepath.Dir(group)), func(t *testing.T) {
			t.Cleanup(func() {
				// Only where the code under test failed is there anything left.
				_ = unix.Unmount(state+"/guests/g1/root", unix.MNT_DETACH)
				if err := cgroup.Remove(context.Background(), group); err != nil {
					t.Error(err)
				}
			})
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "TARE_TEST_CHANGE="+state, "TARE_TEST_CGROUP="+group)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			limit := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer limit.Stop()
			line, err := bufio.NewReader(out).ReadString('\n')
			var alone int
			if _, serr := fmt.Sscanf(line, "changed %d", &alone); serr != nil {
				t.Errorf("the process that makes changes says %q (%v)", line, err)
			}
			if undone, err := Recover(testContext(t), state, nil); err != nil || len(undone) > 0 {
				t.Errorf("while it lives Recover = %v, %v", undone, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // it was killed
			if t.Failed() {
				t.FailNow()
			}
			inside, err := cgroup.Procs(group)
			if err != nil || len(inside) != 1 {
				t.Fatalf("in the cgroup: %v, %v; want one process", inside, err)
			}

			undone, err := Recover(testContext(t), state, map[string]Undo{
				"dir":       func(ctx context.Context, e Entry) error { return RemoveDir(ctx, state, e.Target) },
				"mount":     func(ctx context.Context, e Entry) error { return Unmount(ctx, e.Target) },
				"cgroup":    func(ctx context.Context, e Entry) error { return cgroup.Remove(ctx, e.Target) },
				KindProcess: func(ctx context.Context, e Entry) error { return KillProcess(ctx, e.Target) },
			})
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, e := range undone {
				kinds = append(kinds, e.Kind)
			}
			if want := []string{KindProcess, "cgroup", "mount", "dir"}; !slices.Equal(kinds, want) {
				t.Errorf("undone %v, want %v", kinds, want)
			}
			for _, path := range []string{state + "/guests/g1", group} {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", path, err)
				}
			}
			if mounts, err := proc.MountsBelow(state + "/guests/g1/root"); len(mounts) > 0 || err != nil {
				t.Errorf("still mounted: %v, %v", mounts, err)
			}
			for _, pid := range append(inside, alone) {
				if proctest.Alive(pid) {
					t.Errorf("process %d lives", pid)
				}
			}
			if files := journals(t, state); len(files) > 0 {
				t.Errorf("left: %v", files)
			}
		})
	}
}

// cgroupTop is where the memory hierarchy of version 1 ("cgroup") or that of version 2 ("cgroup2") is mounted.
func cgroupTop(t *testing.T, fstype string) string {
	t.Helper()
	mounts, err := proc.Host.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if m.FSType == fstype && (fstype == "cgroup2" || slices.Contains(strings.Split(m.VFSOptions, ","), "memory")) {
			return m.Mountpoint
		}
	}
	return ""
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"op":"head","format":1,"boot":"b","pid":7}` + "\n" + `{"op":"open","id":1,"entry":{"kind":"dir","target":"/x/y"}}` + "\n" + `{"op":"done","id":1}` + "\n"))
	f.Add([]byte(`{"op":"head","format":2}` + "\n"))
	f.Add([]byte(`{"op":"open","id":1}` + "\n" + `{"op":"open","id":1,"entry":{}}` + "\n" + `{"op":"open","id":1,"entry":{}}` + "\n" + `{"op":"op`))
	f.Add([]byte("\n\nnull\n[]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, open, err := parseJournal(b)
		if lines := strings.Count(string(b), "\n"); len(open) > lines {
			t.Errorf("%d changes on %d lines", len(open), lines)
		}
		if err != nil && !strings.Contains(err.Error(), "line ") {
			t.Errorf("%v names no line", err)
		}
		// A torn end changes nothing.
		_, again, err2 := parseJournal(append(slices.Clone(b[:1+strings.LastIndex(string(b), "\n")]), `{"op":"open","id":99`...))
		if len(again) != len(open) || (err == nil) != (err2 == nil) {
			t.Errorf("with a torn line %v, %v; without %v, %v", again, err2, open, err)
		}
	})
}
