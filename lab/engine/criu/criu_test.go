//go:build linux

package criu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A refusal has CRIU's errors, and names the process that they are about. Where CRIU has written no log, it has what the program printed.
func TestWhy(t *testing.T) {
	const log = `(00.000001) Error (criu/util.c:1): Can't set RLIMIT_NOFILE for 1
(00.000100) Dumping task (pid: 5038)
(00.013044) Error (criu/namespaces.c:460): Can't dump nested uts namespace for 5038
(00.013044) Error (criu/namespaces.c:460): Can't dump nested uts namespace for 5038
(00.013050) Error (criu/namespaces.c:721): Can't make utsns id
(00.013060) Error (criu/x.c:1): of a process that has ended, for 7
`
	name := func(pid int) string { return map[int]string{5038: "systemd-logind"}[pid] }
	want := []string{
		"Error (criu/namespaces.c:460): Can't dump nested uts namespace for 5038 (systemd-logind)",
		"Error (criu/namespaces.c:721): Can't make utsns id",
		"Error (criu/x.c:1): of a process that has ended, for 7",
	}
	if got := failures([]byte(log), name); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	dir := t.TempDir()
	written := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if got := why(filepath.Join(dir, "none"), written("said", "no such container\n")); got != "no such container" {
		t.Errorf("without a log: %q", got)
	}
	if got := why(written("log", "x "+passCred+"\nError (criu/y.c:1): more\n"), filepath.Join(dir, "none")); !strings.HasPrefix(got, "CRIU before 4.2 cannot save") {
		t.Errorf("an Internet socket: %q", got)
	}
}

// What CRIU leaves in /tmp is removed only where its own log names it.
func TestRemoveMounts(t *testing.T) {
	folder := t.TempDir()
	if err := RemoveMounts(folder); err != nil {
		t.Errorf("without a log: %v", err)
	}
	left, err := os.MkdirTemp("/tmp", ".criu.mntns.")
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join("/tmp", ".criu.mntns.Ab1Cd2")
	if err := os.Rename(left, named); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(named) })
	if err := os.MkdirAll(filepath.Join(folder, stateName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, stateName, restoreLog), []byte("mnt: yard "+named+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveMounts(folder); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(named); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", named, err)
	}
}
