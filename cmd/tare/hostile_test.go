//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/desk/words"
	"tare/notebook/notebooktest"
)

// ofAStranger is a results folder whose every free text contains terminal commands.
func ofAStranger(t *testing.T) string {
	t.Helper()
	dir := notebooktest.New(2).Add("bm 1/1GB", 1).Add("cn docker vanilla 1/1GB", 1.2).Add("cn docker pinned 1/1GB", 1.1).Write(t)
	const evil = "\x1b]0;evil\x07\u009b31m\u202e\x7f"
	for _, name := range []string{"host.json", "guests.jsonl", "trials.jsonl", "sessions.jsonl"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		d := json.NewDecoder(bytes.NewReader(text))
		for {
			var v any
			if err := d.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(poisoned(v, evil))
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(line, '\n'))
		}
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// meant are the keys whose values have a meaning: any other value there is damage, and refused.
var meant = regexp.MustCompile(`^(id|guest|treatment|start|created|time|at|digest|platform|answer|better)$`)

// poisoned is a JSON value with additional text at the end of each free text in it.
func poisoned(v any, more string) any {
	switch v := v.(type) {
	case string:
		return v + more
	case []any:
		for i := range v {
			v[i] = poisoned(v[i], more)
		}
	case map[string]any:
		for key := range v {
			if !meant.MatchString(key) {
				v[key] = poisoned(v[key], more)
			}
		}
	}
	return v
}

// onTerminal returns what a command prints to a terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, screen, screen
	err = cmd.Start()
	screen.Close()
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := io.ReadAll(master) // it ends with EIO, once nobody has the screen
	_ = cmd.Wait()                 // its output shows a failure
	return string(shown)
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Text in a folder of results never commands a terminal, whichever command reads it and in whatever format.
func TestAFolderCommandsNoTerminal(t *testing.T) {
	program, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := ofAStranger(t)
	ran := 0
	for _, c := range deskCommands() {
		for _, format := range []string{"", "json", "csv", "markdown"} {
			args := []string{c.Name(), dir}
			switch {
			case c.Name() == "compare":
				args = append(args, dir)
			case c.Name() == "report":
				args = append(args, "--out", t.TempDir())
			}
			if format != "" {
				args = append(args, "--format", format)
			}
			shown := onTerminal(t, exec.CommandContext(t.Context(), program, args...))
			if strings.Contains(shown, "evil") {
				ran++
			}
			rest := colour.ReplaceAllString(shown, "")
			for _, r := range rest {
				if r != '\n' && r != '\r' && r != '\t' && r != '\u00a0' && words.Hidden(r) {
					t.Errorf("tare %v prints the character %U to a terminal: %.200q", args, r, rest[max(0, strings.IndexRune(rest, r)-80):])
					break
				}
			}
		}
	}
	if ran < 3 {
		t.Errorf("the hostile text was shown by %d commands: is it still in what they print?", ran)
	}
}

// Commands that read results have nothing to undo, so the first signal ends them, even if they cannot proceed.
func TestASignalEndsWhatReads(t *testing.T) {
	program, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := notebooktest.New(2).Add("bm 1/1GB", 1).Add("cn docker vanilla 1/1GB", 1.2).Write(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(sig) { // by the parent of this test, such as nohup: then the program rightly ignores it too
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		// A pipe that is full, which nobody reads: it cannot end by itself.
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "export", dir)
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for { // until it writes, and has finished its start
			n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended before the signal: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
			// On SIGQUIT Go's runtime prints where the program was, and exits.
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != sig && !(sig == syscall.SIGQUIT && status.ExitStatus() == 2) {
				t.Errorf("%v: it ended with %v, want that signal", sig, cmd.ProcessState)
			}
		case <-time.After(time.Minute):
			t.Errorf("%v did not end it within a minute", sig)
			_ = cmd.Process.Kill() // its context would as well
			<-ended
		}
		r.Close()
	}
}
