package workload

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tare/internal/require"
	"tare/lab/image"
	"tare/lab/ruler"
	"tare/notebook"
	"tare/workloads"
)

const good = `name: mine
image: {suite: trixie, packages: [busybox]}
files: [run.sh]
params:
  size: {default: "1", values: "[0-9]+", help: how much}
command: [/bin/sh, "{work}/run.sh", "{size}", "{cores}"]
metric: {name: execution time, unit: s}
`

func load(text string) (*Workload, error) {
	return Read(fstest.MapFS{File: {Data: []byte(text)}, "run.sh": {Data: []byte("exit 0\n")}}, "mine")
}

func TestShippedWorkloadsLoad(t *testing.T) {
	if len(Shipped(workloads.FS)) < 2 {
		t.Fatalf("workloads: %v", Shipped(workloads.FS))
	}
	for _, n := range Shipped(workloads.FS) {
		w, err := Find(workloads.FS, n, ".")
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if w.Name != n || w.Title == "" {
			t.Errorf("%s: name %q, title %q", n, w.Name, w.Title)
		}
		for _, f := range w.Files {
			if _, err := workloads.FS.ReadFile(n + "/" + f); err != nil {
				t.Errorf("%s: %v", n, err)
			}
		}
	}
}

func TestErrorsInAWorkloadNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", "files:", "fils:", "mine/workload.yaml:3: unknown key fils"},
		{"path for a file", "[run.sh]", "[../run.sh]", `"../run.sh": must be the plain name of a file`},
		{"unknown placeholder", "{size}", "{sise}", `mine/workload.yaml:6: command: {sise} is unknown: must be a parameter (size) or one of work, scratch`},
		{"default that does not match", `default: "1"`, `default: "one"`, `params: size: default: "one": must be one of its values: [0-9]+`},
		{"no metric", "metric: {name: execution time, unit: s}", "", "metric: must have a name and a unit: {name: …, unit: …}"},
		{"an option for a package", "[busybox]", "[--evil]", `"--evil" is not the name of a Debian package`},
		{"no command", `command: [/bin/sh, "{work}/run.sh", "{size}", "{cores}"]`, "", "command: is missing"},
		{"bad expression", `"[0-9]+"`, `"["`, "params: size: values:"},
		{"an address without a service", "{cores}", "{address}", "command: {address} is only for workloads with a service: leave it out"},
		{"what never ends and is checked", "metric:", "stays: true\ncheck: [/bin/true]\nmetric:", "command: a workload with stays or system is not timed: leave out service, load, check and length"},
		{"a system that is checked", "metric:", "system: true\ncheck: [/bin/true]\nmetric:", "command: a workload with stays or system is not timed"},
		{"a system that never comes up", "metric:", "system: true\nstays: true\nmetric:", "mine/workload.yaml:8: stays: cannot be combined with system: true, whose command ends when the system is up"},
		{"syncs of no parameter", "metric:", "syncs: fsync\nmetric:", `syncs: "fsync": must be always, never, or a parameter with its values, as in size=1|2 (parameters: size)`},
		{"syncs with no value", "metric:", "syncs: size=1|one\nmetric:", `syncs: size="one": `},
		{"syncs and shares of no parameter", "metric:", "syncs: fsync\nshares: all\nmetric:", `syncs: "fsync": must be`},
		{"shares of no parameter", "metric:", "shares: all\nmetric:", `shares: "all": must be always, never, or a parameter with its values`},
		{"a shared folder without shares", "{cores}", "{shared}", "command: {shared} is unknown"},
		{"a shared folder in the preparation", "metric:", "shares: always\nprepare: [/bin/sh, \"{shared}\"]\nmetric:", "prepare: {shared} differs between instances"},
		{"a parameter with the shared folder's name", "params:\n", "shares: size=1\nparams:\n  shared: {default: a, values: a, help: what}\n", `params: "shared": must be`},
		{"own name for a parameter", "size: {default", "work: {default", `params: "work":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.from, c.to, 1)
			if text == good {
				t.Fatal("the case changes nothing")
			}
			_, err := load(text)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant … %s …", err, c.want)
			}
		})
	}
}

// Errors describe the values of a parameter in words or with an example, not with an expression.
func TestAValueOfAnotherForm(t *testing.T) {
	for _, c := range []struct{ values, value, want string }{
		{"0 to 12", "0", ""},
		{"0 to 12", "12", ""},
		{"0 to 12", "13", `workload w: n="13": must be a whole number from 0 to 12 (how many)`},
		{"1 to 12", "0", `workload w: n="0": must be a whole number from 1 to 12 (how many)`},
		{"0 to 12", "07", `workload w: n="07": must be a whole number from 0 to 12 (how many)`},
		{"0 to 12", "many", `workload w: n="many": must be a whole number from 0 to 12 (how many)`},
		{"1|30", "30", ""},
		{"1|30", "2", `workload w: n="2": must be 1 or 30 (how many)`},
		{"[0-9]+[km]", "5k", ""},
		{"[0-9]+[km]", "5", `workload w: n="5": must be a value such as 1 (how many)`},
	} {
		w := &Workload{Name: "w", Params: map[string]Param{"n": {Default: "1", Values: c.values, Help: "how many"}}}
		got := ""
		if _, err := w.Resolve(map[string]string{"n": c.value}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("values: %s:\ngot  %s\nwant %s", c.values, got, c.want)
		}
	}
}

func TestAnArgumentStaysOneArgument(t *testing.T) {
	w, err := load(good)
	if err != nil {
		t.Fatal(err)
	}
	o := w.Order(w.Command, map[string]string{"size": "1; rm -rf /"}, &image.Image{Config: image.Config{
		Env: []string{"PATH=/opt/bin", "LANG=C", "TARE_WORK=/elsewhere"}, WorkingDir: "/srv/", UID: 7,
	}}, Seat{Instance: notebook.Instance{Cores: 2}})
	want := []string{"/bin/sh", ruler.WorkDir + "/run.sh", "1; rm -rf /", "2"}
	if strings.Join(o.Argv, "|") != strings.Join(want, "|") {
		t.Errorf("argv %q, want %q", o.Argv, want)
	}
	env := strings.Join(o.Env, " ")
	if o.Env[0] != "PATH=/opt/bin" || strings.Count(env, "PATH=") != 1 || !strings.Contains(env, "TARE_WORK="+ruler.WorkDir) || strings.Contains(env, "elsewhere") {
		t.Errorf("env %q", o.Env)
	}
	if o.Dir != "/srv" || o.UID != 7 {
		t.Errorf("dir %q, uid %d", o.Dir, o.UID)
	}
}

// A command has what `docker run` gives it and Tare's two folders: no locale, and the home of the image's user.
func TestEnvironment(t *testing.T) {
	const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	work, scratch := "TARE_WORK="+ruler.WorkDir, "TARE_SCRATCH="+ruler.ScratchDir
	for _, c := range []struct {
		config image.Config
		want   []string
	}{
		{image.Config{}, []string{path, "HOME=/root", work, scratch}}, // a root of Debian packages from an earlier Tare
		{image.Config{Home: "/root"}, []string{path, "HOME=/root", work, scratch}},
		{image.Config{Home: "/home/app", Env: []string{path, "EMPTY="}}, []string{path, "HOME=/home/app", "EMPTY=", work, scratch}},
		{image.Config{Home: "/home/app", Env: []string{"HOME=/x", "LC_ALL=de_DE.UTF-8"}}, []string{path, "HOME=/x", "LC_ALL=de_DE.UTF-8", work, scratch}},
		{image.Config{Home: "/home/app", Env: []string{"HOME="}}, []string{path, "HOME=/home/app", work, scratch}},
	} {
		o := (&Workload{}).Order([]string{"/app"}, nil, &image.Image{Config: c.config}, Seat{})
		if !slices.Equal(o.Env, c.want) {
			t.Errorf("%+v gives %q, want %q", c.config, o.Env, c.want)
		}
	}
	if o := (&Workload{}).Order([]string{"/app"}, nil, &image.Image{Config: image.Config{UID: 1, GID: 2, Groups: []uint32{3, 4}}}, Seat{}); o.UID != 1 || o.GID != 2 || !slices.Equal(o.Groups, []uint32{3, 4}) {
		t.Errorf("%+v", o)
	}
}

// An image without a command is refused if the workload has none either.
func TestCommandOfTheImage(t *testing.T) {
	for _, c := range []struct {
		w      Workload
		config image.Config
		ok     bool
	}{
		{Workload{}, image.Config{}, false}, {Workload{}, image.Config{Cmd: []string{""}}, false}, {Workload{}, image.Config{Entrypoint: []string{"/a"}}, true},
		{Workload{}, image.Config{Cmd: []string{"/a"}}, true}, {Workload{Command: []string{"/a"}}, image.Config{}, true}, {Workload{Load: &Load{}}, image.Config{}, true},
	} {
		err := c.w.commanded(&image.Image{Reference: "app:1", Config: c.config})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "image app:1 names no command") {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// Tare warns of an image whose locale prints numbers with commas, if Tare reads its program's numbers.
func TestCommas(t *testing.T) {
	prints := &Workload{Metric: Metric{Match: "([0-9.]+)"}}
	for env, warned := range map[string]bool{
		"": false, "LANG=C.UTF-8": false, "LANG=en_GB.UTF-8": false, "LANG=de_DE.UTF-8": true, "LC_NUMERIC=fr_FR": true, "LANG=de_DE LC_ALL=C": false,
		"LANG=C LC_ALL=de_DE": true, "LANG=de_DE LC_NUMERIC=POSIX": false, "LANG=de_DE LC_ALL=": true,
	} {
		if got := prints.commas(strings.Fields(env)); len(got) > 0 != warned {
			t.Errorf("%q: %q", env, got)
		}
		if got := (&Workload{}).commas(strings.Fields(env)); got != nil {
			t.Errorf("%q, of times: %q", env, got)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		r    ruler.Result
		want string
	}{
		{ruler.Result{}, ""},
		{ruler.Result{Error: "no such command"}, "no such command"},
		{ruler.Result{Exit: 3, Stderr: []byte("a\nbad \x1b[31mthing\n\n")}, "exit said=bad ?[31mthing status=3"},
		{ruler.Result{Exit: 3, Stdout: []byte("only here")}, "exit said=only here status=3"},
		{ruler.Result{Signal: "SIGKILL", OOMKills: 1}, "out-of-memory signal=SIGKILL"},
		{ruler.Result{Signal: "SIGSEGV"}, "signal said= signal=SIGSEGV"},
		{ruler.Result{TimedOut: true, Signal: "SIGKILL", Elapsed: 2 * time.Second}, "timed-out after=2 said="},
	} {
		if got := Failure(c.r); got.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
	if got := Failure(ruler.Result{Exit: 1, Stderr: []byte(strings.Repeat("x", 5000))}); len(got.String()) > 400 {
		t.Errorf("a cause of %d bytes", len(got.String()))
	}
}

func TestTheKnownWorkIsKnown(t *testing.T) {
	require.Program(t, "cc")
	w, err := Find(workloads.FS, "cpu", ".")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "cpu")
	if err := w.compile(t.Context(), "cpu.c", out); err != nil {
		t.Fatal(err)
	}
	// x = 6364136223846793005*x + 1442695040888963407 mod 2^64, 10^6 times from 42, computed step by step.
	x := uint64(42)
	for range 1_000_000 {
		x = 6364136223846793005*x + 1442695040888963407
	}
	got, err := exec.CommandContext(t.Context(), out, "1").Output()
	if err != nil || strings.TrimSpace(string(got)) != strconv.FormatUint(x, 10) {
		t.Errorf("cpu 1: %q, %v; want %d", got, err, x)
	}
	for _, bad := range [][]string{nil, {"0"}, {"x"}, {"1x"}} {
		var ee *exec.ExitError
		if err := exec.CommandContext(t.Context(), out, bad...).Run(); !errors.As(err, &ee) || ee.ExitCode() != 2 {
			t.Errorf("cpu %q: %v, want exit status 2", bad, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("params: {a: {values: '(?:a*)*b'}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := load(string(text))
		if err != nil {
			return
		}
		p, err := w.Resolve(nil)
		if err != nil {
			t.Fatalf("accepted, but its defaults are not: %v", err)
		}
		if o := w.Order(w.Command, p, &image.Image{}, Seat{Instance: notebook.Instance{Cores: 1}}); len(o.Argv) != len(w.Command) {
			t.Errorf("%d arguments became %d", len(w.Command), len(o.Argv))
		}
	})
}
