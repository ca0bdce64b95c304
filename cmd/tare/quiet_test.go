//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/lab/proc"
	"tare/notebook"
)

// force gives what is in force by a file of the kernel's.
func force(t *testing.T, file string) string {
	t.Helper()
	text, err := proc.Setting(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What --tune-host sets is said, recorded and in force while the run lasts, and put back at its end, on an interrupt, and by `tare clean` after a
// kill.
func TestQuietIsPutBack(t *testing.T) {
	h := newHost(t)
	const aslr, pages = "/proc/sys/kernel/randomize_va_space", "/sys/kernel/mm/transparent_hugepage/enabled"
	before := map[string]string{aslr: force(t, aslr), pages: force(t, pages)}
	need(t, before[aslr] != "0" && before[pages] != "never", "a host with random addresses and transparent huge pages")
	args := []string{"bench", "--tune-host", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--rounds", "3", "--out", "R", "--", "sleep", "0.3"}
	back := func(after string) {
		t.Helper()
		f, err := notebook.Read(filepath.Join(h.dir, "R"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Sessions {
			for _, q := range s.Quiet {
				if got := force(t, q.File); got != q.From {
					t.Errorf("after %s: %s says %q, want %q", after, q.File, got, q.From)
				}
			}
		}
		for file, was := range before {
			if got := force(t, file); got != was {
				t.Errorf("after %s: %s says %q, want %q", after, file, got, was)
			}
		}
	}
	for _, signal := range []os.Signal{syscall.SIGKILL, os.Interrupt} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := h.command(ctx, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := os.RemoveAll(filepath.Join(h.dir, "R")); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var start notebook.Session
		for start.Event == "" { // the notebook tells nobody
			if f, err := notebook.Read(filepath.Join(h.dir, "R")); err == nil && len(f.Sessions) > 0 {
				start = f.Sessions[0]
			}
			if ctx.Err() != nil {
				t.Fatalf("no session within a minute:\n%s", said.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
		names := map[string]bool{}
		for _, q := range start.Quiet {
			names[q.File] = true
			if got := force(t, q.File); got != q.To || q.From == q.To {
				t.Errorf("%s says %q during the run, and is recorded as set from %q to %q", q.File, got, q.From, q.To)
			}
		}
		if !names[aslr] || !names[pages] {
			t.Errorf("set: %v, want these too: %s, %s", start.Quiet, aslr, pages)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		for _, text := range notebook.Said(start.Quiet) {
			if !strings.Contains(said.String(), "tuned host, until the run ends: "+text+"\n") {
				t.Errorf("%q is not said:\n%s", text, said.String())
			}
		}
		if signal == syscall.SIGKILL {
			if got := force(t, aslr); got != "0" {
				t.Errorf("after kill -9 %s says %q: was it changed at all?", aslr, got)
			}
			if out := h.must("clean"); !strings.Contains(out, "put back: setting "+aslr+"\n") {
				t.Errorf("tare clean: %s", out)
			}
		}
		back(signal.String())
	}
	h.must(args...)
	back("the end")
	says := func(want string, args ...string) {
		t.Helper()
		if out := strings.Join(strings.Fields(h.must(args...)), " "); !strings.Contains(out, want) {
			t.Errorf("tare %s does not say %q:\n%s", strings.Join(args, " "), want, out)
		}
	}
	says("was made quieter for the time of the run (--tune-host): ", "summary", "R", "--verbose")
	// Meanwhile something else is busy, which every trial's record has.
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if said := h.must("bench", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--rounds", "2", "--out", "R2", "--compare", "R", "--", "sleep", "0.3"); !strings.Contains(said, "From R to R2") {
		t.Errorf("--compare: %s", said)
	}
	if err := busy.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	busy.Wait()
	f, err := notebook.Read(filepath.Join(h.dir, "R2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Trials(func(tr *notebook.Trial) error {
		if b := tr.Beside; b == nil || b.OthersS+b.StolenS < 0.1 || b.OthersS+b.StolenS > b.OfS+1e-9 {
			t.Errorf("%s, round %d: %+v, beside a program that is busy", tr.Treatment, tr.Round, b)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	says("R2: 2 of 2 rounds were disturbed: other programs and the kernel used up to ", "summary", "R2", "--verbose")
	says("with nothing set by --tune-host, an earlier one with ", "summary", "R", "R2", "--verbose")
	says("the settings of the host by --tune-host: ", "compare", "R", "R2")
}
