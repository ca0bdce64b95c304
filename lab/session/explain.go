//go:build linux

package session

import (
	"errors"
	"os"
	"regexp"
	"strings"

	"tare/lab/crowd"
	"tare/lab/device"
	"tare/lab/fault"
	"tare/lab/trace"
	"tare/notebook"
)

// Explain prepares the named tracers for the traced trials of a study, until the session is closed. It returns those that this host
// does not support, or supports only in part, with the reason. An unknown name is an error.
func (l *Lab) Explain(names []string) (missing map[string]string, err error) {
	if l.kit, err = trace.Open(names); err != nil {
		return nil, err
	}
	return l.kit.Missing(), nil
}

// tracers reports for each tracer whether this host supports it.
func tracers() []notebook.Capability {
	if os.Geteuid() != 0 {
		return []notebook.Capability{{Name: "tracers", Answer: notebook.Inconclusive, Why: "finding out needs root, to load them into the kernel", Do: "sudo tare doctor"}}
	}
	kit, err := trace.Open(notebook.TracerNames)
	if err != nil { // these are all names
		panic(err)
	}
	defer kit.Close()
	missing := kit.Missing()
	var all []notebook.Capability
	for _, name := range notebook.TracerNames {
		c := notebook.Capability{Name: "tracer " + name, Answer: notebook.Supported, Why: "the kernel takes all of it"}
		if why, not := missing[name]; not {
			c.Answer, c.Why, c.Do = notebook.NotSupported, why, "leave it out: an account uses the other tracers"
		}
		all = append(all, c)
	}
	return all
}

// faults reports whether this host supports the classification of page faults, by trying it.
func faults() notebook.Capability {
	c := notebook.Capability{Name: "page faults", Answer: notebook.Supported, Why: "the kernel takes the programs that see each one, and its page tables can be walked"}
	if os.Geteuid() != 0 {
		c.Answer, c.Why, c.Do = notebook.Inconclusive, "finding out needs root, to load programs into the kernel", "sudo tare doctor"
		return c
	}
	if err := fault.Supported(); err != nil {
		c.Answer, c.Why, c.Do = notebook.NotSupported, err.Error(), "omit page faults (paging: faults: in a study's file): page tables can be read without them"
	}
	return c
}

// nvidiaDriver is the file with the version of NVIDIA's driver.
var nvidiaDriver = "/proc/driver/nvidia/version"

var versionOK = regexp.MustCompile(`^NVRM version: .*?\s([0-9]+(?:\.[0-9]+)+)\s`)

// nvidia is the version of NVIDIA's driver in the kernel; "" if it is not loaded.
func nvidia() string {
	text, err := os.ReadFile(nvidiaDriver)
	if m := versionOK.FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

// devices reports which devices of the host guests can have: those that are described and exist.
func devices() notebook.Capability {
	c := notebook.Capability{Name: "devices"}
	names, broken := device.List(device.Dirs)
	var there []string
	for _, name := range names {
		if _, err := device.Find(device.Dirs, []string{name}); err != nil {
			broken = append(broken, err)
			continue
		}
		there = append(there, name)
	}
	why := []string{"described are " + strings.Join(there, ", ")}
	c.Answer = notebook.Supported
	if len(there) == 0 {
		c.Answer, c.Do = notebook.NotSupported, "generate a description with the vendor's tool, such as nvidia-ctk cdi generate; studies without devices need none"
		why = []string{"none is described (CDI) in " + strings.Join(device.Dirs, " or ")}
		if len(broken) > 0 {
			why = nil
		}
		if v := nvidia(); v != "" {
			why = append(why, "NVIDIA's driver "+v+" is loaded")
			c.Do = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml (package nvidia-container-toolkit)"
		}
	}
	for _, err := range broken {
		why = append(why, err.Error())
	}
	c.Why = strings.Join(why, "; ")
	return c
}

// Trace implements crowd.Guest.
func (g guest) Trace(of crowd.Traced) (crowd.Tracing, error) {
	if g.kit == nil {
		return nil, errors.New("no tracers were prepared")
	}
	pids, err := g.Processes()
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 {
		return nil, errors.New("the guest has ended")
	}
	t := trace.Target{PID: pids[0], Cores: g.cores, CPUs: g.cpus, Launchers: true, Each: of.Requests && !g.unseen}
	if t.Threads, err = g.Threads(); err != nil {
		return nil, err
	}
	if of.Clock != nil {
		threads, err := of.Clock.Threads()
		if err != nil {
			return nil, err
		}
		t.Word = len(threads) == 0 // it is on another machine
		for _, th := range threads {
			if th.Role == notebook.RoleRuler {
				t.Clock = append(t.Clock, th.ID)
			}
		}
	}
	tracing := g.kit.Attach(t)
	if !of.Requests {
		return tracing, nil
	}
	return g.requests(tracing, of, pids), nil
}
