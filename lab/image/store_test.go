package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"

	"golang.org/x/sys/unix"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// childEnv makes this test program a builder that TestKilled kills: "STORE LAYOUT".
const childEnv = "TARE_TEST_IMAGE_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		store, layout, _ := strings.Cut(job, " ")
		if err := build(store, layout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// build does all that a store can do without packages.
func build(store, layout string) error {
	s, err := OpenStore(store)
	if err != nil {
		return err
	}
	fmt.Println("started") // from here on it may be killed
	ctx := context.Background()
	img, err := s.OCI(ctx, layout, nil)
	if err != nil {
		return err
	}
	if _, err := img.Disk(ctx); err != nil {
		return err
	}
	t, err := s.Files(ctx, map[string]Source{"a": {Data: bytes.Repeat([]byte("a"), 1<<20)}, "b/c": {Path: "/bin/sh", Exec: true}})
	if err != nil {
		return err
	}
	_, err = t.Disk(ctx)
	return err
}

// Builders killed at random moments leave nothing that is half in the store, and nothing that the next one does not
// sweep away.
func TestKilled(t *testing.T) {
	require.Root(t)
	needTool(t, "mke2fs", "e2fsprogs")
	fsck := needTool(t, "e2fsck", "e2fsprogs")
	var items []item
	for i := range 400 {
		items = append(items, file(fmt.Sprintf("d%d/f%d", i%20, i), strings.Repeat("x", 10*i)))
	}
	layout := writeLayout(t, imageOf(t, nil, archiveOf(t, items...)))

	child := func(store string) (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		// The race detector sleeps for a second at exit, where there is nothing left to kill.
		cmd.Env = append(os.Environ(), childEnv+"="+store+" "+layout, "GORACE=atexit_sleep_ms=0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stdout, make([]byte, len("started\n"))); err != nil {
			cmd.Process.Kill()
			t.Fatalf("builder: %v, %v: %s", err, cmd.Wait(), &stderr)
		}
		return cmd, &stderr
	}
	// The parent-death signal of the builders is about this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// How long a whole build takes, and what it makes.
	disks := smallFS(t, "size=3g") // in memory: there the time goes into the work, not into waiting for the disk
	var reference string
	whole := time.Hour
	for i := range 3 { // the shortest: the first may be slow, and the rest would be done before they are killed
		reference = filepath.Join(disks, fmt.Sprint("reference", i))
		cmd, stderr := child(reference)
		start := time.Now()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		whole = min(whole, time.Since(start))
	}
	want := listing(t, filepath.Join(reference, keptDir))

	const builders = 40
	rng := rand.New(rand.NewPCG(1, 2))
	died, states := 0, map[int]int{}
	var store string
	for i := range builders {
		if i%4 == 0 { // a few deaths on the same store, then a new one
			store = filepath.Join(disks, fmt.Sprint("store", i))
		}
		cmd, stderr := child(store)
		// The moment is the point of the test, not a wait for something.
		killer := time.AfterFunc(time.Duration(rng.Float64()*0.8*float64(whole)), func() { cmd.Process.Kill() })
		err := cmd.Wait()
		killer.Stop()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
			died++
		} else if err != nil {
			t.Fatalf("builder %d: %v: %s", i, err, stderr)
		}
		s, err := OpenStore(store)
		if err != nil {
			t.Fatal(err)
		}
		// Its mke2fs, where there was one, dies a moment later and holds the lock until then; nothing tells when.
		left, err := os.ReadDir(filepath.Join(store, tmpDir))
		for deadline := time.Now().Add(time.Minute); err == nil && len(left) != 0 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
			if _, err := s.Sweep(); err != nil {
				t.Fatal(err)
			}
			left, err = os.ReadDir(filepath.Join(store, tmpDir))
		}
		if err != nil || len(left) != 0 {
			t.Errorf("builder %d left %v, %v", i, left, err)
		}
		kept, err := os.ReadDir(filepath.Join(store, keptDir))
		if err != nil {
			t.Fatal(err)
		}
		states[len(kept)]++
		for _, k := range kept {
			digest := strings.Replace(k.Name(), "-", ":", 1)
			if rec, err := s.find(digest); rec == nil || err != nil {
				t.Errorf("builder %d: kept %s without its record: %v", i, k.Name(), err)
			}
			tree := listing(t, filepath.Join(s.keptPath(digest), treeName))
			if tree != listing(t, filepath.Join(reference, keptDir, k.Name(), treeName)) {
				t.Errorf("builder %d: kept %s is not whole", i, k.Name())
			}
			disk := filepath.Join(s.keptPath(digest), fmt.Sprintf("disk%d.ext4", diskVersion))
			if _, err := os.Stat(disk); err == nil {
				runTool(t, fsck, "-fn", disk)
			}
		}
	}
	if died < builders/4 {
		t.Errorf("only %d of %d builders were killed in time: the moments are wrong", died, builders)
	}
	t.Logf("%d of %d killed within %v; trees in the store then: times seen %v", died, builders, whole, states)
	// And one that is left in peace makes all of it.
	cmd, stderr := child(store)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if got := withoutTimes(listing(t, filepath.Join(store, keptDir))); got != withoutTimes(want) {
		t.Errorf("after all the deaths the store has\n%.3000s\nwant\n%.3000s", got, want)
	}
}

// withoutTimes drops the lines that say when a tree was made.
func withoutTimes(listing string) string {
	var out []string
	for _, l := range strings.Split(listing, "\n") {
		if !strings.Contains(l, `"made"`) {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestSweepLeavesTheLiving(t *testing.T) {
	s := newStore(t)
	w, err := s.workspace()
	if err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(s.root, tmpDir, "stranger")
	if err := os.Mkdir(stranger, 0o700); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Sweep(); err != nil || len(removed) != 0 {
		t.Errorf("swept %v, %v", removed, err)
	}
	for _, d := range []string{w.dir, stranger} {
		if _, err := os.Stat(d); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
	// What a dead process leaves: the lock file, held by nobody, and the folder.
	if err := w.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Sweep(); err != nil || len(removed) != 1 || removed[0] != w.dir {
		t.Errorf("swept %v, %v, want %s", removed, err, w.dir)
	}
	if err := os.Remove(stranger); err != nil {
		t.Fatal(err)
	}
}

// Many at once, one result, and sweeps between.
func TestTogether(t *testing.T) {
	s := newStore(t)
	needTool(t, "mke2fs", "e2fsprogs")
	layout := writeLayout(t, appImage(t))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			own, err := OpenStore(s.root) // as another process would
			if err != nil {
				t.Error(err)
				return
			}
			img, err := own.OCI(t.Context(), layout, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := img.Disk(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := own.Files(t.Context(), map[string]Source{"x": {Data: []byte("same")}, "y": {Data: []byte{byte(i % 2)}}}); err != nil {
				t.Error(err)
			}
			if _, err := own.Sweep(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if kept, err := os.ReadDir(filepath.Join(s.root, keptDir)); err != nil || len(kept) != 3 {
		t.Errorf("kept %v, %v, want 3", kept, err)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	s := newStore(t)
	unlock, err := s.lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.lock(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	unlock, err = s.lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestDamagedStore(t *testing.T) {
	s := newStore(t)
	tree, err := s.Files(t.Context(), map[string]Source{"f": {Data: []byte("1")}})
	if err != nil {
		t.Fatal(err)
	}
	rec := filepath.Join(filepath.Dir(tree.Dir), recordName)
	for _, bad := range []string{"", "{", `{"digest":"sha256:0"}`, strings.Repeat("[", 100_000)} {
		if err := os.WriteFile(rec, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Files(t.Context(), map[string]Source{"f": {Data: []byte("1")}}); err == nil || !strings.Contains(err.Error(), rec+" is damaged") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestFiles(t *testing.T) {
	s := newStore(t)
	in := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(in, []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	files := map[string]Source{"input/clip": {Path: in}, "run.sh": {Data: []byte("#!/bin/sh\n"), Exec: true}, "empty": {}}
	tree, err := s.Files(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := listing(t, tree.Dir), "empty=\ninput/\ninput/clip=input\nrun.sh=#!/bin/sh\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[string]fs.FileMode{".": fs.ModeDir | 0o755, "input": fs.ModeDir | 0o755, "input/clip": 0o644, "run.sh": 0o755} {
		fi, err := os.Stat(filepath.Join(tree.Dir, n))
		if err != nil || fi.Mode() != want || fi.ModTime().Unix() != 0 {
			t.Errorf("%s: %v %v, %v", n, fi.Mode(), fi.ModTime(), err)
		}
	}
	// The digest is of names, modes and contents: where a file was, and how, does not matter.
	same := map[string]Source{"input/clip": {Data: []byte("input")}, "run.sh": files["run.sh"], "empty": {}}
	if again, err := s.Files(t.Context(), same); err != nil || again.Digest != tree.Digest {
		t.Errorf("the same files: %v, %v, want %s", again, err, tree.Digest)
	}
	seen := map[string]string{tree.Digest: "all"}
	for what, other := range map[string]map[string]Source{
		"mode":    {"input/clip": {Path: in}, "run.sh": {Data: []byte("#!/bin/sh\n")}, "empty": {}},
		"content": {"input/clip": {Path: in}, "run.sh": {Data: []byte("#!/bin/bash\n"), Exec: true}, "empty": {}},
		"name":    {"input/clap": {Path: in}, "run.sh": {Data: []byte("#!/bin/sh\n"), Exec: true}, "empty": {}},
		"fewer":   {"input/clip": {Path: in}, "run.sh": {Data: []byte("#!/bin/sh\n"), Exec: true}},
		"none":    {},
	} {
		o, err := s.Files(t.Context(), other)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if with, ok := seen[o.Digest]; ok {
			t.Errorf("%s has the digest of %s", what, with)
		}
		seen[o.Digest] = what
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files map[string]Source
		want  string
	}{
		{map[string]Source{"../x": {}}, "relative path"}, {map[string]Source{"/x": {}}, "relative path"}, {map[string]Source{"": {}}, "relative path"}, {map[string]Source{".": {}}, "relative path"},
		{map[string]Source{"a/../b": {}}, "relative path"}, {map[string]Source{"a": {}, "a.b": {}, "a/b/c": {}}, "is a file and"},
		{map[string]Source{"x": {Path: in, Data: []byte("y")}}, "both"}, {map[string]Source{"x": {Path: "/nonexistent"}}, "no such file"},
		{map[string]Source{"x": {Path: "/tmp"}}, "not a regular file"}, {map[string]Source{"x": {Path: fifo}}, "not a regular file"}, {map[string]Source{"x": {Path: "/dev/zero"}}, "not a regular file"},
	} {
		if _, err := s.Files(t.Context(), tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.files, err, tt.want)
		}
	}
}

// everything is an image with every kind of thing that is kept.
func everything(t *testing.T, s *Store) *Image {
	withCap := owned(file("ping", "x"), 0, 0, 0o755)
	withCap.PAXRecords = map[string]string{xattrPrefix + capability: string([]byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})}
	img, err := s.OCI(t.Context(), writeLayout(t, imageOf(t, nil, archiveOf(t,
		owned(dir("d", 0), 5, 6, 0o2750), owned(file("d/su", "x"), 1000, 2000, 0o4755), hard("d/su2", "d/su"), withCap,
		link("abs", "/etc/passwd"), link("dangling", "../../nowhere"), file(strings.Repeat("long/", 60)+"f", "deep"), file("caf\xe9/t\xe9", "no UTF-8"),
		file("big", strings.Repeat("0123456789", 100_000))))), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTar(t *testing.T) {
	s := newStore(t)
	img := everything(t, s)
	var b, again bytes.Buffer
	if err := img.Tar(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := img.Tar(t.Context(), &again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("the second stream differs, %v", err)
	}
	links := 0
	for tr := tar.NewReader(bytes.NewReader(b.Bytes())); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeLink {
			links++
		}
	}
	if links != 1 {
		t.Errorf("%d hard links, want 1", links)
	}
	// What comes out goes in again, and is the same.
	d := t.TempDir()
	if _, err := unpackAll(t.Context(), d, defaultLimits, false, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if got, want := attributes(t, d), attributes(t, img.Dir); got != want {
		t.Errorf("unpacked again:\n%s\nwant\n%s", got, want)
	}
	stop := errors.New("stop")
	if err := img.Tar(t.Context(), failing{stop}); !errors.Is(err, stop) {
		t.Errorf("a reader who leaves: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// attributes is a listing with owners, modes, times, links and capabilities, without contents.
func attributes(t *testing.T, root string) string {
	var b strings.Builder
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(root, p)
		target, _ := os.Readlink(p)
		capab := ""
		size := fi.Size()
		if fi.Mode().IsRegular() {
			if capab, err = fileCapability(p); err != nil {
				return err
			}
		} else {
			size = 0
		}
		fmt.Fprintf(&b, "%s %v %d:%d %d %v links %d %q %x\n", rel, fi.Mode(), st.Uid, st.Gid, size, fi.ModTime().UnixNano(), st.Nlink, target, capab)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDisk(t *testing.T) {
	s := newStore(t)
	needTool(t, "mke2fs", "e2fsprogs")
	fsck, debugfs := needTool(t, "e2fsck", "e2fsprogs"), needTool(t, "debugfs", "e2fsprogs")
	img := everything(t, s)
	disk, err := img.Disk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runTool(t, fsck, "-fn", disk)
	if out := runTool(t, debugfs, "-R", "ls -l /", disk); !strings.Contains(out, ".tare") || !strings.Contains(out, "dangling") {
		t.Errorf("in its root:\n%s", out)
	}
	out := runTool(t, debugfs, "-R", "stat /d/su", disk)
	for _, want := range []string{"Mode:  04755", "User:  1000", "Group:  2000", "Links: 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := runTool(t, debugfs, "-R", "cat "+"/"+strings.Repeat("long/", 60)+"f", disk); !strings.Contains(out, "deep") {
		t.Errorf("the deep file: %s", out)
	}
	if capab, err := fileCapability(filepath.Join(img.Dir, "ping")); err != nil {
		t.Error(err)
	} else if out := runTool(t, debugfs, "-R", "ea_list /ping", disk); capab != "" && !strings.Contains(out, capability) {
		t.Errorf("no capability: %s", out)
	}
	fi, err := os.Stat(disk)
	if err != nil {
		t.Fatal(err)
	}
	used := fi.Sys().(*syscall.Stat_t).Blocks * 512
	if fi.Size() < diskHeadroom || used > 100<<20 {
		t.Errorf("%d bytes, of which %d are on the disk", fi.Size(), used)
	}
	// The second time it is there.
	again, err := img.Disk(t.Context())
	if err != nil || again != disk {
		t.Errorf("%s, %v", again, err)
	}
	if fi2, err := os.Stat(again); err != nil || !os.SameFile(fi, fi2) {
		t.Errorf("made again: %v", err)
	}
	// Made anew, it has the same identity.
	identity := func() string {
		var id string
		for _, l := range strings.Split(runTool(t, debugfs, "-R", "show_super_stats -h", disk), "\n") {
			if strings.HasPrefix(l, "Filesystem UUID:") || strings.HasPrefix(l, "Directory Hash Seed:") || strings.HasPrefix(l, "Block count:") {
				id += l + "\n"
			}
		}
		return id
	}
	first := identity()
	if err := os.Remove(disk); err != nil {
		t.Fatal(err)
	}
	if _, err := img.Disk(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second := identity(); second != first || strings.Count(first, "\n") != 3 {
		t.Errorf("the same tree gave\n%s\nand\n%s", first, second)
	}
}

func TestDiskInterrupted(t *testing.T) {
	s := newStore(t)
	needTool(t, "mke2fs", "e2fsprogs")
	img := everything(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := img.Disk(ctx); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if found, err := filepath.Glob(filepath.Join(filepath.Dir(img.Dir), "*.ext4")); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
