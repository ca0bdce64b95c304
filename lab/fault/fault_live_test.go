//go:build linux

package fault

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"tare/internal/require"
)

// known is testdata/fault.c, compiled, and a file for it.
func known(t *testing.T) (program, file string) {
	t.Helper()
	require.Root(t)
	require.Program(t, "cc")
	if err := Supported(); err != nil {
		require.That(t, false, "page faults that can be seen: "+err.Error())
	}
	dir := t.TempDir()
	program, file = filepath.Join(dir, "fault"), filepath.Join(dir, "file")
	if said, err := exec.Command("cc", "-O1", "-static", "-Wall", "-o", program, "testdata/fault.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, said)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(slices.Repeat([]byte("some text of 16 "), 1<<20)); err != nil { // 16 MiB, in the page cache
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // a page that is being written to the disk is write-protected
		t.Fatal(err)
	}
	return program, file
}

// fixed runs f, which starts processes that have the same addresses each time: else a stack may reach into one more page.
func fixed(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	const noRandomize = 0x0040000
	was, _, errno := unix.Syscall(unix.SYS_PERSONALITY, noRandomize, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	f()
	if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, was, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	runtime.UnlockOSThread()
}

// watched runs f while faults of what descends from the processes are counted.
func watched(t *testing.T, rulers []int, f func()) (tally Tally) {
	t.Helper()
	w, err := Begin(rulers, tally.Add)
	if err != nil {
		t.Fatal(err)
	}
	f()
	lost, err := w.Stop()
	if err != nil || lost != (Lost{}) {
		t.Fatalf("lost %+v: %v", lost, err)
	}
	return tally
}

// Each program makes exactly so many faults of one kind more than it makes with none.
func TestKnownFaultsAreToldExactly(t *testing.T) {
	program, file := known(t)
	count := func(kind string, n int64) Tally {
		return watched(t, []int{os.Getpid()}, func() {
			fixed(t, func() {
				if said, err := exec.Command(program, file, kind, fmt.Sprint(n)).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", kind, err, said)
				}
			})
		})
	}
	for _, c := range []struct {
		name string
		kind Kind
		n    int64
	}{
		{"anonymous", Anonymous, 200}, {"zero", Anonymous, 200}, {"read", Read, 200}, {"copy-on-write", CopyOnWrite, 200}, {"shared", Shared, 200},
		{"write-protect", WriteProtect, 200}, {"unknown", Unknown, 15},
	} {
		// The host may take a page of the program's own away, or be at work on it, so that one of two runs reads it in once more. That does not happen each time.
		var wrong []string
		for range 5 {
			wrong = nil
			none, all := count(c.name, 0), count(c.name, c.n)
			for k := range Kinds {
				want := none.Of[k]
				if k == c.kind {
					want += c.n
				}
				if all.Of[k] != want {
					wrong = append(wrong, fmt.Sprintf("%d of %s: %d faults of kind %s, want %d (without them %d)", c.n, c.name, all.Of[k], k, want, none.Of[k]))
				}
			}
			if wrong == nil {
				break
			}
		}
		for _, text := range wrong {
			t.Error(text)
		}
	}
}

// Two guests that read the same pages of a file at the same addresses: the second repeats each translation of the first.
func TestAnotherGuestRepeatsTranslations(t *testing.T) {
	program, file := known(t)
	repeats := func(n int) (tally Tally) {
		var guests [2]*exec.Cmd
		var begin [2]io.WriteCloser
		var rulers []int
		fixed(t, func() {
			for i := range guests {
				guests[i] = exec.Command("sh", "-c", `read go; "$0" "$1" read "$2"; exit $?`, program, file, fmt.Sprint(n))
				var err error
				if begin[i], err = guests[i].StdinPipe(); err != nil {
					t.Fatal(err)
				}
				if err := guests[i].Start(); err != nil {
					t.Fatal(err)
				}
				rulers = append(rulers, guests[i].Process.Pid)
			}
		})
		return watched(t, rulers, func() {
			for i, g := range guests { // one after the other
				fmt.Fprintln(begin[i])
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	const n = 100
	var more, again int64
	for range 5 { // as above
		none, all := repeats(0), repeats(n)
		if more, again = all.Of[Read]-none.Of[Read], all.Repeated[Read]-none.Repeated[Read]; more == 2*n && again == n {
			return
		}
	}
	t.Errorf("two guests made %d read faults more, %d of them like the other's; want %d and %d", more, again, 2*n, n)
}

// What a maker starts for a guest is that guest's, through processes that outlive their parents too. What it started before, and what others
// start, is not.
func TestFaultsOfMakingAGuest(t *testing.T) {
	program, file := known(t)
	const n = 200
	var tally [2]Tally
	w, err := BeginMaking([]int{os.Getpid()}, func(f Fault) { tally[f.Guest].Add(f) })
	if err != nil {
		require.That(t, false, "processes that can be followed: "+err.Error())
	}
	run := func(count int) {
		t.Helper()
		// The shell ends at once, and its child goes on as init's.
		c := exec.Command("sh", "-c", `("$0" "$1" "$2" "$3"; echo "$?") & exit 0`, program, file, "read", fmt.Sprint(count))
		said, err := c.Output() // until the child has closed it
		if err != nil || string(said) != "0\n" {
			t.Fatalf("%v: %s", err, said)
		}
	}
	run(n) // for no guest
	for guest, count := range []int{0, n} {
		if err := w.Making(guest); err != nil {
			t.Fatal(err)
		}
		run(count)
	}
	lost, err := w.Stop()
	if err != nil || lost != (Lost{}) {
		t.Fatalf("lost %+v: %v", lost, err)
	}
	// The addresses of the two runs differ, and with them how many pages a fault maps.
	if got := tally[1].Of[Read] - tally[0].Of[Read]; tally[0].Faults() == 0 || got < n-20 || got > n+20 {
		t.Errorf("the second guest has %d read faults more, want about %d", got, n)
	}
}
