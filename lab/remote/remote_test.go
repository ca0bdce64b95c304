//go:build linux

package remote

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/internal/require"
)

// What the keeper does not like it says in one line, before anything is made.
func TestAMachineThatWillNotDo(t *testing.T) {
	require.Root(t)
	require.Program(t, "setpriv")
	for _, c := range []struct {
		want string
		argv []string
	}{
		{"it is " + arch + ", and the load uses the service's programs, which are for other", []string{"sh", "-c", keeper, "keeper", "other"}},
		{"user nobody is not root there", []string{"setpriv", "--reuid", "nobody", "--clear-groups", "sh", "-c", keeper, "keeper", arch}},
		{"it has no program unshare", []string{"env", "PATH=" + tools(t), "sh", "-c", keeper, "keeper", arch}},
	} {
		out, err := exec.CommandContext(t.Context(), c.argv[0], c.argv[1:]...).CombinedOutput()
		if said := string(out); err == nil || !strings.HasPrefix(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q, %v; want one line that begins with %q", said, err, c.want)
		}
	}
}

// startKeeper starts one whose folders are below base, and gives the folder that it made.
func startKeeper(t *testing.T, base string) (k *exec.Cmd, hangUp func(), folder string) {
	t.Helper()
	k = exec.Command("sh", "-c", strings.ReplaceAll(keeper, "/var/lib/tare-load", base), "keeper", arch)
	k.Env = append(os.Environ(), "SSH_CONNECTION=10.0.0.1 22 10.0.0.2 22")
	in, err := k.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := k.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); k.Wait() }) // one that has ended is waited for already
	said, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(said)
	if err != nil || len(words) != 6 {
		t.Fatalf("it said %q, %v", said, err)
	}
	return k, func() { in.Close() }, words[1]
}

// What a killed keeper left goes with the next one, even where a process of the same number lives; what a living one has stays, and goes with it.
func TestAKilledKeepersFolder(t *testing.T) {
	require.Root(t)
	base := t.TempDir()
	killed, hangUp, left := startKeeper(t, base)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	hangUp()
	_ = killed.Wait() // it was killed
	again := filepath.Join(base, strconv.Itoa(os.Getpid()))
	if err := os.Rename(left, again); err != nil {
		t.Fatal(err)
	}
	living, end, folder := startKeeper(t, base)
	if _, err := os.Stat(again); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a killed keeper stays: %v", err)
	}
	_, _, other := startKeeper(t, base)
	for _, f := range []string{folder, other} {
		if _, err := os.Stat(filepath.Join(f, "trees")); err != nil {
			t.Errorf("the folder of a living keeper: %v", err)
		}
	}
	end()
	if err := living.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a keeper that ended stays: %v", err)
	}
}

// tools gives a folder with no programs but the keeper's first ones.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "id", "uname"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = exec.Command("ln", "-s", path, dir+"/"+name).Run()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWordsOfACommand(t *testing.T) {
	words := []string{"printf", "%s|", "it's", `a "b" $c \`, "two\nlines"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", Command(words...)).Output()
	if want := strings.Join(words[2:], "|") + "|"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// FuzzHear: whatever a machine says when it is reached, it is a folder below the one that Tare uses there and an address, or an error.
func FuzzHear(f *testing.F) {
	for _, s := range []string{
		"tare-load /var/lib/tare-load/12 10.0.0.1 22 10.0.0.2 22\n", "Welcome!\ntare-load /var/lib/tare-load/1 fe80::1 1 fe80::2 22",
		"tare-load / 10.0.0.1 22 10.0.0.2 22\n", "tare-load", "", strings.Repeat("x", maxGreeting+1), "tare-load /var/lib/tare-load/1/../../etc 10.0.0.1 1 10.0.0.2 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := hear(strings.NewReader(s))
		if err == nil && (!folderOK.MatchString(g.folder) || !g.here.IsValid()) {
			t.Errorf("%+v of %q", g, s)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
