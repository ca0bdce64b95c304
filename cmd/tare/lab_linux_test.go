package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tare/lab/studyfile"
	"tare/notebook"
)

// An unknown set of claims would fail the report after all measurements, so the run refuses it first.
func TestUnknownClaims(t *testing.T) {
	r := running{out: filepath.Join(t.TempDir(), "R")}
	err := r.run(t.Context(), &studyfile.Spec{Name: "mine", Claims: []string{"pining"}}, false)
	if err == nil || !strings.Contains(err.Error(), `study mine: claims: there are no claims of "pining": must be one of `) {
		t.Errorf("got %v", err)
	}
}

// A run checks its flags before it looks at the host.
func TestAMissingInput(t *testing.T) {
	spec, err := benchOf("--platforms", "bm", "--input", "none.mp4", "--", "cat", "{input}")
	if err != nil {
		t.Fatal(err)
	}
	r := running{out: filepath.Join(t.TempDir(), "R"), input: "none.mp4"}
	if err := r.run(t.Context(), spec, false); err == nil || err.Error() != "--input none.mp4: there is no such file" {
		t.Errorf("got %v", err)
	}
}

func TestFlagsOfARun(t *testing.T) {
	all := strings.Join(notebook.TracerNames, ", ")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"quick", "--explain=sheduler"}, `--explain: unknown tracer "sheduler"; the tracers are ` + all},
		{[]string{"quick", "--explain="}, `--explain is empty: is a variable unset?`},
		{[]string{"quick", "--explain", "io"}, `run "io": only one study is allowed; write tracers after an equals sign: --explain=io`},
		{[]string{"quick", "--rounds", "x"}, "--rounds \"x\": must be a whole number; see `run --help`"},
		{[]string{"quick", "--time-budget", "5"}, "--time-budget \"5\": must be a time such as 90s, 10m or 1h30m; see `run --help`"},
		{[]string{"quick", "--vm-kernel", "main.go"}, "--vm-kernel: kernel main.go: it is not a kernel; give a bzImage (vmlinuz) or an uncompressed vmlinux for x86-64"},
		{[]string{"quick", "--vm-kernel="}, `--vm-kernel is empty: is a variable unset?`},
		{[]string{"--explain"}, `run: name one study (tare study list) or one study file`},
		{[]string{"--explain", "no-such-study"}, `no-such-study`}, // an argument of its own, not a tracer
	} {
		cmd := runCommand()
		cmd.SetFlagErrorFunc(flagError)
		cmd.SetArgs(c.args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("run %q: %v; want %s", c.args, err, c.want)
		}
	}
	got, err := studyfile.ParseExplain(runCommand().Flags().Lookup("explain").NoOptDefVal)
	if err != nil || !slices.Equal(got, notebook.DefaultTracers) {
		t.Errorf("--explain without a value: %q, %v", got, err)
	}
}

// flagsOf reads the flags of a run, and returns what it prints about them.
func flagsOf(args ...string) (r running, said string, err error) {
	var b strings.Builder
	c := &cobra.Command{Use: "run"}
	c.SetErr(&b)
	r.flags(c, "", "")
	r.timing(c)
	if err := c.ParseFlags(args); err != nil {
		return r, "", err
	}
	err = r.check(c)
	return r, b.String(), err
}

// Older flags keep their meaning, and name the flag to use now.
func TestOlderFlags(t *testing.T) {
	for older, now := range map[string][2]string{
		"--until=±1%":           {"--precision=1%", "tare: --until '±1%' is now --precision 1%\n"},
		"--until=decided at 2%": {"--decide=2%", "tare: --until 'decided at 2%' is now --decide 2%\n"},
		"--until=decided":       {"--decide=margin", "tare: --until decided is now --decide margin\n"},
		"--until=claims":        {"--until-claims", "tare: --until claims is now --until-claims\n"},
		"--until=p95 < 1.5x":    {"", "tare: --until 'p95 < 1.5x' is now tare fit STUDY --limit 'p95 < 1.5x'\n"},
		"--quiet":               {"--tune-host", "tare: --quiet is now --tune-host, and keeps that meaning until 0.2.0; -q prints no progress\n"},
	} {
		was, said, err := flagsOf(older)
		if now[0] == "" {
			if err != nil || !was.known.Seeks() || said != now[1] {
				t.Errorf("%s: %+v, %q, %v", older, was.known, said, err)
			}
			continue
		}
		is, nothing, err2 := flagsOf(now[0])
		if err != nil || err2 != nil || was.known != is.known || was.tuneHost != is.tuneHost || was.silent || !is.known.Asked() && !is.tuneHost || said != now[1] || nothing != "" {
			t.Errorf("%s: %+v, %q, %v; %s: %+v, %q, %v", older, was.known, said, err, now[0], is.known, nothing, err2)
		}
	}
	if _, _, err := flagsOf("--precision", "1%", "--until-claims", "--rounds", "3"); err == nil || err.Error() != "--precision and --until-claims and --rounds: only one of them is allowed" {
		t.Errorf("three flags: %v", err)
	}
}

// Without a study, tare fit adds containers with a CPU quota next to short work.
func TestUsualFit(t *testing.T) {
	for _, c := range []struct {
		args, platforms, work, limit string // limit: a CPU limit; empty: the study's own
	}{
		{"", "cn", "shor", "vanilla"},
		{"--platforms vm,vm-container --workload cpu --provisioning set", "vm vmcn", "cpu", "pinned"},
		{"--only workload=sjeng,platform=vm,provisioning=pinned", "bm cn vm", "shor sjeng fileserver", ""},
	} {
		r := running{}
		f := &cobra.Command{}
		r.flags(f, "", "")
		work := f.Flags().String("workload", "", "")
		if err := f.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := r.check(f); err != nil {
			t.Fatal(err)
		}
		spec, err := r.fitting(nil, *work)
		if err != nil {
			t.Fatal(err)
		}
		var platforms, works []string
		for _, p := range spec.Platforms {
			platforms = append(platforms, p.Platform)
			if c.limit != "" && p.Platform != notebook.BM && !slices.Equal(p.Provisioning, []string{c.limit}) {
				t.Errorf("%s: %s has the limits %v", c.args, p.Platform, p.Provisioning)
			}
		}
		for _, u := range spec.Workloads {
			works = append(works, u.Name)
		}
		if strings.Join(platforms, " ") != c.platforms || strings.Join(works, " ") != c.work {
			t.Errorf("%s: %v, %v", c.args, platforms, works)
		}
	}
	for args, want := range map[string]string{
		"--limit p95>1":       `--limit "p95>1": must be an objective such as 'p95 < 1.5x', with p10 to p99 and more than 1x`,
		"--limit=":            "--limit is empty: is a variable unset?",
		"density ./mine":      `fit "./mine": only one study is allowed`,
		"no-such-study":       "no-such-study",
		"--platforms vm,host": "--platforms vm,host: tare fit adds containers or VMs; name container, vm or vm-container",
		"--platforms fish":    `study density-small: unknown platform "fish"; must be one of bm, cn, vm, vmcn`,
	} {
		c := fitCommand()
		c.SetArgs(strings.Fields(args))
		c.SilenceUsage, c.SilenceErrors = true, true
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fit %s: %v; want %s", args, err, want)
		}
	}
}

func TestTracersThatDoNotWorkAreOneLinePerReason(t *testing.T) {
	got := notTraced(map[string]string{"scheduler": "no BPF", "io": "no BPF", "hypervisor": "no KVM"})
	want := []string{"not traced: scheduler, io: no BPF", "not traced: hypervisor: no KVM"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// --compare takes only a folder of the same study that the run does not write itself.
func TestWhatARunIsComparedWith(t *testing.T) {
	const sample = "testdata/samples/timing"
	for _, c := range []struct{ since, out, want string }{
		{"", "new", ""},
		{sample, "new", ""},
		{sample, "testdata/samples/timing-again", ""}, // it is continued
		{sample, sample, "is also the folder of --out; name the folder of an earlier run"},
		{"testdata/samples/chr", "new", "holds the study sample-chr; name a folder of the study sample-timing"},
		{"nothing", "new", "name a folder that `tare run` or `tare bench` made"},
	} {
		r := running{since: c.since, out: c.out}
		if err := r.checkSince("sample-timing"); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with --out %s: %v, want %q", c.since, c.out, err, c.want)
		}
	}
}
