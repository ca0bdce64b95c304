//go:build linux

package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// hook has a shell run the line.
func hook(when, line string) Hook {
	return Hook{When: when, Hook: specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", line, "zero", "one"}}}
}

// Hooks run in the order of their moments, each with the container's state, its own arguments and its own environment.
func TestRun(t *testing.T) {
	root, bundle := t.TempDir(), t.TempDir()
	second := hook("createContainer", "read state; echo \"$state\" > state; echo second $1 $COLOUR ${HOME-none} >> said; pwd >> said")
	second.Env = []string{"COLOUR=green"}
	err := Run(t.Context(), []Hook{second, hook("createRuntime", "echo first >> said"), hook("prestart", "echo and this >> said")}, "guest", root, bundle)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(filepath.Join(bundle, "said")); err != nil || string(said) != "first\nand this\nsecond one green none\n"+bundle+"\n" {
		t.Errorf("the hooks said %q, %v", said, err)
	}
	var state specs.State
	text, err := os.ReadFile(filepath.Join(bundle, "state"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Version == "" || state.ID != "guest" || state.Status != specs.StateCreating || state.Pid != os.Getpid() || state.Bundle != bundle {
		t.Errorf("the state is %s, %v", text, err)
	}
	var spec specs.Spec
	if text, err = os.ReadFile(filepath.Join(state.Bundle, "config.json")); err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil || spec.Root == nil || spec.Root.Path != root {
		t.Errorf("the configuration is %s, %v", text, err)
	}
}

func TestWhatIsWrongWithAHook(t *testing.T) {
	second := 1
	hangs := hook("createContainer", "echo $$ > group; echo here I am; sleep 1000 & sleep 1000")
	hangs.Timeout = &second
	gone := Hook{When: "createContainer", Hook: specs.Hook{Path: "/no/such/program"}}
	for name, c := range map[string]struct {
		hook Hook
		want []string
	}{
		"fails":          {hook("createContainer", "cat > /dev/null; echo out; echo the reason >&2; exit 3"), []string{"/bin/sh -c", "createContainer", "exit status 3", "its last output: the reason"}},
		"fails silently": {hook("createRuntime", "exit 4"), []string{"/bin/sh", "createRuntime", "exit status 4"}},
		"prints a lot":   {hook("createContainer", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i of many; done; exit 5"), []string{"exit status 5", "its last output: line 20000 of many"}},
		"hangs":          {hangs, []string{"within 1s", "killed", "its last output: here I am"}},
		"is not there":   {gone, []string{"/no/such/program", "no such file"}},
		"late":           {hook("poststart", "exit 0"), []string{"/bin/sh", "poststart"}},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, start := t.TempDir(), time.Now()
			err := Run(t.Context(), []Hook{c.hook, hook("createContainer", "touch next")}, "guest", t.TempDir(), bundle)
			if err == nil {
				t.Fatal("no error")
			}
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			if _, err := os.Stat(filepath.Join(bundle, "next")); err == nil {
				t.Error("the next hook ran")
			}
			nobody(t, filepath.Join(bundle, "group"))
		})
	}
}

// What a hook leaves running is ended with it, and what holds its output open is not waited for.
func TestHookLeavesAProcess(t *testing.T) {
	bundle, start := t.TempDir(), time.Now()
	if err := Run(t.Context(), []Hook{hook("createContainer", "echo $$ > group; sleep 1000 &")}, "guest", t.TempDir(), bundle); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	nobody(t, filepath.Join(bundle, "group"))
}

func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	bundle := t.TempDir()
	if err := Run(ctx, []Hook{hook("createContainer", "echo $$ > group; sleep 1000")}, "guest", t.TempDir(), bundle); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error in it", err)
	}
	nobody(t, filepath.Join(bundle, "group"))
}

// nobody says that of the process group whose number is in the file nobody is left; a killed process takes a moment to end.
func nobody(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return // it did not come so far
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		members, err := alive(group)
		if err != nil || members == nil {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("of group %d there live %v", group, members)
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}

// alive lists the processes of a group that have not ended.
func alive(group int) (pids []string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // ended just now
		}
		_, rest, _ := strings.Cut(string(text), ") ") // proc_pid_stat(5)
		var state string
		var parent, of int
		if _, err := fmt.Sscan(rest, &state, &parent, &of); err == nil && of == group && state != "Z" {
			pids = append(pids, file)
		}
	}
	return pids, err
}
