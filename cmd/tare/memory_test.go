//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/lab/proc"
	"tare/notebook"
)

// What Tare did not start is accounted for all the same, and as the kernel does.
func TestWithDockerMemoryOfWhatOthersStarted(t *testing.T) {
	need(t, os.Geteuid() == 0, "root")
	need(t, has("busybox"), "busybox (busybox-static)")
	need(t, has("qemu-system-x86_64"), "QEMU")
	needDocker(t)
	tare, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	said := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, errorOutput(err))
		}
		return strings.TrimSpace(string(out))
	}
	name := fmt.Sprint("tare-test-memory-", os.Getpid())
	said("sh", "-c", `tar -C "$(dirname "$(command -v busybox)")" -ch busybox | docker import - `+name)
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "-f", name}, {"rmi", name}} {
			if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
				t.Errorf("docker %q: %v: %s", args, err, out)
			}
		}
	})
	id := said("docker", "run", "-d", "--network", "none", "--name", name, name, "/busybox", "sh", "-c", "/busybox sleep 1000 & wait")
	vm := exec.CommandContext(ctx, "qemu-system-x86_64", "-name", "guest="+name+"-vm", "-M", "microvm", "-m", "64", "-S", "-display", "none", "-nodefaults", "-qmp", "stdio")
	out, err := vm.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := vm.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := vm.Start(); err != nil {
		t.Fatal(err)
	}
	defer vm.Wait()
	defer vm.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil { // its greeting: the machine is made, and stands still
		t.Fatal(err)
	}

	container, err := strconv.Atoi(said("docker", "inspect", "-f", "{{.State.Pid}}", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		asked, name, kind string
		processes, first  int
	}{
		{name, name, notebook.MemoryContainer, 2, container},
		{id[:10], name, notebook.MemoryContainer, 2, container},
		{name + "-vm", name + "-vm", notebook.MemoryVM, 1, vm.Process.Pid},
		{strconv.Itoa(vm.Process.Pid), name + "-vm", notebook.MemoryVM, 1, vm.Process.Pid},
		{strconv.Itoa(container), fmt.Sprint("busybox ", container), notebook.MemoryProcesses, 1, container},
	} {
		var wrong string
		for range 30 { // what is shared with others, libraries say, they come and go with
			var a notebook.MemoryAccount
			if err := json.Unmarshal([]byte(said(tare, "memory", c.asked, "--format", "json", "--contents=false")), &a); err != nil {
				t.Fatal(err)
			}
			first := func(p notebook.MemoryProcess) bool { return p.PID == c.first } // the numbers of the others may be lower
			if len(a.Guests) != 1 || a.Guests[0].Name != c.name && c.kind != notebook.MemoryProcesses || a.Guests[0].Kind != c.kind || len(a.Guests[0].Processes) != c.processes || !slices.ContainsFunc(a.Guests[0].Processes, first) {
				wrong = fmt.Sprintf("%+v", a.Guests)
				continue // the shell in the container has not forked yet
			}
			wrong = ""
			for _, p := range a.Guests[0].Processes {
				r, err := proc.RollupOf(p.PID)
				if err != nil {
					t.Fatal(err)
				}
				if want := (notebook.MemoryWeight{RSS: r.RSS, PSS: r.PSS + p.PSS%1024, USS: r.USS, Swap: r.Swap}); p.MemoryWeight != want {
					wrong += fmt.Sprintf("process %d: %+v, the kernel says %+v ", p.PID, p.MemoryWeight, want)
				}
			}
			if wrong == "" {
				break
			}
		}
		if wrong != "" {
			t.Errorf("tare memory %s: %s", c.asked, wrong)
		}
	}
	if text := said(tare, "memory"); !strings.Contains(text, "\n"+name+" ") || !strings.Contains(text, "\n"+name+"-vm ") || !strings.Contains(text, "\nhost ") {
		t.Errorf("tare memory does not list what runs:\n%s", text)
	}
}

func TestFlagsOfMemory(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--max-memory", "5"}, `--max-memory "5": must be a size from 32MB to 1024TB`},
		{[]string{"--watch=-1s"}, `--watch -1s: must be a positive time, such as 2s`},
		{[]string{"no-such-guest"}, `no container or VM "no-such-guest" is running; running containers and VMs: `},
		{[]string{"8388608"}, `8388608 is neither a process nor the name of a container or VM`},
	} {
		cmd := memoryCommand()
		cmd.SetArgs(c.args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("memory %q: %v; want %s", c.args, err, c.want)
		}
	}
}

// errorOutput is what a command that failed wrote to standard error.
func errorOutput(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}
