//go:build linux

package symbols

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A stripped Go program's functions are known, at the places in its file where they are.
func TestStrippedGo(t *testing.T) {
	dir := t.TempDir()
	source := dir + "/main.go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(tare()) }\n\n//go:noinline\nfunc tare() int { return 7 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"exe"} {
		program := dir + "/" + mode
		cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode="+mode, "-ldflags=-s -w", "-o", program, source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p, err := Open(program)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for i, name := range p.table.names {
			if name != "main.tare" {
				continue
			}
			found = true
			at := p.table.at[i]
			for _, s := range p.segments {
				if at >= s.Vaddr && at < s.Vaddr+s.Filesz {
					if got := p.Name(at - s.Vaddr + s.Off + 1); got != "main.tare" {
						t.Errorf("%s: %q is at the place of main.tare", mode, got)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: main.tare is none of the %d functions", mode, len(p.table.names))
		}
	}
}

// What is installed here, C code before Go's among it.
func TestInstalled(t *testing.T) {
	for _, program := range []string{"dockerd", "containerd", "runc", "podman"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		p, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		n := 0
		for _, name := range p.table.names {
			if strings.HasPrefix(name, "runtime.mallocgc") {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s: runtime.mallocgc is none of its %d functions", program, len(p.table.names))
		}
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := Open("/proc/cmdline"); err == nil {
		t.Error("no error for a file that is no program")
	}
}
