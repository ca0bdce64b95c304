//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tare/desk/export"
	"tare/internal/require"
	"tare/lab/image/imagetest"
	"tare/lab/network/networktest"
	"tare/notebook"
)

// These tests start the program as a user does. They need root, and the components that each names.

func need(t *testing.T, ok bool, what string) {
	t.Helper()
	require.That(t, ok, what)
}

func has(program string) bool { _, err := exec.LookPath(program); return err == nil }

func dockerAnswers() bool {
	return has("docker") && exec.Command("docker", "version").Run() == nil
}

// withDocker decides by a test's name whether the test may use Docker. scripts/test runs those that do in a lane of their own, so
// the others find no Docker.
func withDocker(t *testing.T) bool {
	return strings.HasPrefix(t.Name(), "TestWithDocker") || strings.HasPrefix(t.Name(), "TestAlone")
}

func needDocker(t *testing.T) {
	t.Helper()
	if !withDocker(t) {
		t.Fatal("a test that uses Docker is to be named TestWithDocker…: scripts/test runs those in a lane of their own")
	}
	need(t, dockerAnswers(), "a running Docker Engine")
}

var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tare-e2e-bin-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // an unprivileged user runs it too
		return "", err
	}
	out := filepath.Join(dir, "tare")
	if said, err := exec.Command("../../scripts/programs").CombinedOutput(); err != nil { // the programs are embedded
		return "", fmt.Errorf("scripts/programs: %w: %s", err, said)
	}
	// As users have it, without the race detector, which makes unpacking an image several times slower.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, said)
	}
	return out, nil
})

func TestMain(m *testing.M) {
	if os.Getenv(withoutBPF) != "" {
		os.Unsetenv(withoutBPF)
		fmt.Fprintln(os.Stderr, refuseBPF(os.Args[1:])) // it returns only on failure
		os.Exit(1)
	}
	status := m.Run()
	if out, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(out))
	}
	os.Exit(status)
}

// testHost is the program with a working folder, for one test.
type testHost struct {
	t     *testing.T
	tare  string
	state string // Tare's state folder, shared by all tests, so that kernels and roots are made once
	image string // an OCI layout that Tare did not make
	dir   string
	kept  []string // ids of Tare's containers that another run left before the test
}

func newHost(t *testing.T) *testHost {
	t.Helper()
	need(t, os.Geteuid() == 0, "root")
	need(t, has("busybox"), "busybox (busybox-static)")
	if !withDocker(t) {
		t.Setenv("DOCKER_HOST", "unix:///nosuch/docker.sock")
	}
	out, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h := &testHost{t: t, tare: out, dir: dir, state: filepath.Join(filepath.Dir(out), "state"), image: filepath.Join(dir, "image")}
	writeLayout(t, h.image)
	if h.kept, err = dockerContainers(); err != nil {
		t.Fatal(err)
	}
	before := dockerImages()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if said, err := h.command(ctx, "clean").CombinedOutput(); err != nil {
			t.Errorf("tare clean: %v: %s", err, said)
		}
		h.nothingLeft()
		for _, id := range dockerImages() {
			if !slices.Contains(before, id) {
				if said, err := exec.Command("docker", "rmi", id).CombinedOutput(); err != nil {
					t.Errorf("docker rmi %s: %v: %s", id, err, said)
				}
			}
		}
	})
	return h
}

// dockerImages are the images that Tare has imported into Docker, by id.
func dockerImages() []string {
	out, err := exec.Command("docker", "images", "-q", "--no-trunc", "--filter", "label=tare.image").Output()
	if err != nil {
		return nil // no Docker, no images
	}
	return strings.Fields(string(out))
}

// dockerContainers are Tare's, by id; none where Docker does not answer.
func dockerContainers() ([]string, error) {
	if !dockerAnswers() {
		return nil, nil
	}
	out, err := exec.Command("docker", "ps", "-a", "-q", "--filter", "label=tare").Output()
	return strings.Fields(string(out)), err
}

// quiet checks times in the results of `tare bench` with these arguments: see [require.Quiet].
func (h *testHost) quiet(args []string, check func(t testing.TB, out string)) {
	h.t.Helper()
	n := 0
	require.Quiet(h.t, func(t testing.TB) {
		n++
		out := fmt.Sprintf("R%d", n)
		h.must(append([]string{"bench", "--out", out}, args...)...)
		check(t, out)
	})
}

func (h *testHost) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.tare, args...)
	cmd.Env = append(os.Environ(), h.env()...)
	cmd.Dir = h.dir
	return cmd
}

// env lets tare use the tests' state folder and the tests' lock, because other lanes of the suite run tare at the same time.
func (h *testHost) env() []string {
	return []string{"TARE_STATE=" + h.state, "TARE_TEST_LOCK=" + filepath.Join(filepath.Dir(h.state), "lock")}
}

// run runs the program to its end and returns its output.
func (h *testHost) run(args ...string) (stdout, stderr string, status int) {
	h.t.Helper()
	// Three times the longest time on two cores, because some hosts lose more than half of their CPU time to others.
	const limit = 20 * time.Minute
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	cmd := h.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	if ctx.Err() != nil {
		h.t.Fatalf("tare %s was not done in %v: %s", strings.Join(args, " "), limit, errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (h *testHost) must(args ...string) string {
	h.t.Helper()
	out, errs, status := h.run(args...)
	if status != 0 {
		h.t.Fatalf("tare %s: exit status %d\n%s", strings.Join(args, " "), status, errs)
	}
	return out
}

// nothingLeft looks at the host itself, not at Tare's journal.
func (h *testHost) nothingLeft() {
	h.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, h.state) {
			h.t.Errorf("left mounted: %s", line)
		}
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range procs {
		if text, err := os.ReadFile(p); err == nil && (bytes.Contains(text, []byte(h.dir)) || bytes.Contains(text, []byte(h.state))) {
			h.t.Errorf("left running: %s: %q", p, text)
		}
	}
	left, err := deserted()
	for end := time.Now().Add(time.Minute); err == nil && len(left) > 0 && time.Now().Before(end); left, err = deserted() {
		time.Sleep(20 * time.Millisecond) // the kernel gives no notice
	}
	if err != nil || len(left) > 0 {
		h.t.Errorf("left cgroups: %v %v", left, err)
	}
	for _, dir := range []string{"guests", "journal"} {
		entries, err := os.ReadDir(filepath.Join(h.state, dir))
		if err == nil && len(entries) > 0 {
			h.t.Errorf("left in %s: %v", dir, entries)
		}
	}
	if left := networktest.Deserted(h.t); len(left) > 0 {
		h.t.Errorf("left in the firewall: %q", left)
	}
	containers, err := dockerContainers()
	containers = slices.DeleteFunc(containers, func(id string) bool { return slices.Contains(h.kept, id) })
	if err != nil || len(containers) > 0 {
		h.t.Errorf("left containers: %v %v", containers, err)
	}
}

// deserted are the cgroups of guests without a process. In other lanes guests' cgroups are empty for a moment, too.
func deserted() (all []string, err error) {
	for _, pattern := range []string{"/sys/fs/cgroup/*tare-r*", "/sys/fs/cgroup/*/*tare-r*"} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			lives := false
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.IsDir() {
					return err
				}
				processes, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
				lives = lives || len(processes) > 0
				return err
			})
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV): // it is gone
			case err != nil:
				return nil, err
			case !lives:
				all = append(all, dir)
			}
		}
	}
	return all, nil
}

// writeLayout makes an OCI layout of busybox without Tare's code.
func writeLayout(t *testing.T, dir string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"bin":         {Mode: fs.ModeDir | 0o755},
		"etc":         {Mode: fs.ModeDir | 0o755},
		"bin/busybox": {Data: data, Mode: 0o755},
		"etc/passwd":  {Data: []byte("root:x:0:0:root:/:/bin/sh\n"), Mode: 0o644},
	}
	for _, name := range []string{"sh", "true", "false", "cat", "sleep", "dd", "head", "stream"} {
		files["bin/"+name] = &fstest.MapFile{Data: []byte("busybox"), Mode: fs.ModeSymlink | 0o777}
	}
	layer, err := imagetest.Layer(files)
	if err != nil {
		t.Fatal(err)
	}
	img, err := imagetest.Image(func(c *v1.ConfigFile) {
		c.Config = v1.Config{Env: []string{"PATH=/bin", "GREETING=hello"}, Cmd: []string{"true"}}
	}, layer)
	if err == nil {
		err = imagetest.Write(dir, img)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type row struct {
	Platform       string
	Engine         *string
	Accelerator    *string
	Provisioning   *string
	Instance       string
	Trials, Failed int
	Mean           *float64
	MeanLow        *float64 `json:"mean_low"`
	MeanHigh       *float64 `json:"mean_high"`
	Ratio          *float64
	RatioLow       *float64 `json:"ratio_low"`
	RatioHigh      *float64 `json:"ratio_high"`
	Emulated       bool
	AA             bool `json:"aa_control"`
	Notes          []string
}

func (r row) name() string {
	text := r.Platform
	for _, s := range []*string{r.Engine, r.Provisioning} {
		switch {
		case s == nil:
		case *s == "crun" || *s == "runc": // whichever the host supports
			text += " oci"
		default:
			text += " " + *s
		}
	}
	if r.AA {
		text += " aa"
	}
	return text
}

// decodeRows decodes the rows in the output of summary --format json into a slice.
func decodeRows(t testing.TB, text string, rows any) {
	t.Helper()
	answer := struct {
		Schema string
		Rows   any
	}{Rows: rows}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Schema != export.SummarySchema {
		t.Fatalf("summary: %v in %.300s", err, text)
	}
}

func rows(t testing.TB, text string) []row {
	t.Helper()
	var all []row
	decodeRows(t, text, &all)
	return all
}

// count is a command that takes some milliseconds on any host.
var count = []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}

// TestWithDockerBenchInContainers checks `tare bench`, its table, its report and its exports, on bare metal and in containers.
func TestWithDockerBenchInContainers(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	need(t, has("skopeo"), "skopeo")
	// The layout as a well-known tool writes it.
	other := filepath.Join(h.dir, "skopeo")
	if said, err := exec.Command("skopeo", "copy", "--insecure-policy", "oci:"+h.image, "oci:"+other+":latest").CombinedOutput(); err != nil {
		t.Fatalf("skopeo: %v: %s", err, said)
	}
	h.image = other
	h.bench("bm,cn:docker,cn:crun|runc", "bm", "bm aa", "cn docker pinned", "cn docker vanilla", "cn oci pinned", "cn oci vanilla")
}

// TestBenchInVMs checks the same in virtual machines, and in containers there.
func TestBenchInVMs(t *testing.T) {
	h := newHost(t)
	need(t, has("qemu-system-x86_64"), "QEMU")
	h.bench("bm,vm,vmcn", "bm", "bm aa", "vm qemu pinned", "vm qemu vanilla", "vmcn qemu pinned", "vmcn qemu vanilla")
}

// bench measures on platforms, and checks the rows, in alphabetical order, and all that is made from them.
func (h *testHost) bench(platforms string, want ...string) {
	t := h.t
	t.Helper()
	h.must(append([]string{"bench", "--image", h.image, "--platforms", platforms, "--instances", "1/512MB", "--rounds", "2", "--seed", "3", "--out", "R", "--"}, count...)...)
	got := rows(t, h.must("summary", "R", "--format", "json"))
	var names []string
	trials := 0
	for _, r := range got {
		names = append(names, r.name())
		// Emulated configurations are never ranked and run in one round, which shows that they work; one round has no interval.
		rounds := 2
		if r.Emulated {
			rounds = 1
		}
		trials += rounds
		// Two rounds on a busy machine may leave a ratio without bounds; then a note must say so.
		bounded := r.RatioLow != nil || r.name() == "bm" || slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "is unbounded") })
		if r.Failed != 0 || r.Trials != rounds || r.Mean == nil || r.MeanLow == nil != (rounds == 1) || r.Ratio == nil || !bounded && rounds > 1 {
			t.Errorf("%s: %+v", r.name(), r)
		}
		if emulated := r.Accelerator != nil && *r.Accelerator == notebook.TCG; emulated != r.Emulated {
			t.Errorf("%s: emulated %v with accelerator %v", r.name(), r.Emulated, r.Accelerator)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("rows %q\nwant %q", names, want)
	}
	report, err := os.ReadFile(filepath.Join(h.dir, "R", "report.html"))
	if err != nil || !bytes.Contains(report, []byte("<svg")) {
		t.Errorf("report.html: %v, %d bytes", err, len(report))
	}
	for _, format := range []string{"csv", "json", "parquet"} {
		out := h.must("export", "R", "--format", format)
		n := 0
		switch format {
		case "csv":
			all, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if err != nil {
				t.Error(err)
			}
			n = len(all) - 1
		case "json":
			var all []map[string]any
			if err := json.Unmarshal([]byte(out), &all); err != nil {
				t.Error(err)
			}
			n = len(all)
		case "parquet":
			if !strings.HasPrefix(out, "PAR1") || !strings.HasSuffix(out, "PAR1") {
				t.Error("export: not a parquet file")
			}
			continue
		}
		if n != 2*trials { // each has a warm-up
			t.Errorf("export %s: %d rows, want %d", format, n, 2*trials)
		}
	}
	// The folder is complete: the same command changes nothing.
	before, err := os.ReadFile(filepath.Join(h.dir, "R", "trials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	h.must(append([]string{"bench", "--image", h.image, "--platforms", platforms, "--instances", "1/512MB", "--rounds", "2", "--out", "R", "--"}, count...)...)
	after, err := os.ReadFile(filepath.Join(h.dir, "R", "trials.jsonl"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a complete folder was written to again (%v)", err)
	}
	h.nothingLeft()
}

func TestAloneHalfACoreTakesTwice(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	h.quiet([]string{"--image", h.image, "--platforms", "cn:crun|runc", "--instances", "0.5/512MB,1/512MB", "--rounds", "2", "--",
		"sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"}, h.halfACoreTakesTwice)
}

func (h *testHost) halfACoreTakesTwice(t testing.TB, out string) {
	f, err := notebook.Read(filepath.Join(h.dir, out))
	if err != nil {
		t.Fatal(err)
	}
	cores := map[string]float64{}
	for _, tr := range f.Study.Treatments {
		cores[tr.ID] = tr.Instance.Cores
	}
	// Compared with the CPU time of the same trials, because a neighbour on the machine slows both. A quota is for 0.1 s, and in
	// its first and last period a trial may need half of each. All trials count together, because the machine may delay one of them
	// by some hundredths of a second.
	type sum struct{ took, want, won float64 }
	sums := map[string]sum{}
	if err := f.Trials(func(tr *notebook.Trial) error {
		s := sums[tr.Treatment]
		s.took, s.want = s.took+tr.ElapsedS, s.want+(tr.Usage.UserS+tr.Usage.SystemS)/cores[tr.Treatment]
		if cores[tr.Treatment] < 1 {
			s.won += 0.1
		}
		sums[tr.Treatment] = s
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for treatment, s := range sums {
		if s.took < 0.95*s.want-s.won || s.took > 1.15*s.want {
			t.Errorf("%s: %.3g s, want %.3g, less %g", treatment, s.took, s.want, s.won)
		}
	}
	// The summary shows the same, with an interval as wide as a busy machine makes it.
	for _, r := range rows(t, h.must("summary", out, "--format", "json", "--baseline", "platform=cn,provisioning=vanilla,instance=1/512MB")) {
		if r.Instance == "0.5/512MB" && (r.Ratio == nil || *r.Ratio < 1.3 || *r.Ratio > 3) {
			t.Errorf("half a core against one: %+v, want about 2", r)
		}
	}
}

// TestWithDockerKilledAtAnyMoment kills the program 30 times at random moments, starts it again each time, and checks the notebook
// and what is left on the host.
func TestWithDockerKilledAtAnyMoment(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	needDocker(t)
	const rounds, kills = 12, 30 // this many rounds are rarely done before the last kill
	args := append([]string{"bench", "--image", h.image, "--platforms", "bm,cn:crun|runc,cn:docker", "--instances", "1/512MB",
		"--rounds", fmt.Sprint(rounds), "--out", "R", "--"}, count...)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	finished := 0
	for range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := h.command(ctx, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		moment := time.NewTimer(time.Duration(rng.Int64N(int64(1500 * time.Millisecond))))
		select {
		case <-moment.C:
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-ended
		case err := <-ended:
			finished++
			if err != nil {
				t.Fatalf("it ended by itself: %v\n%s", err, said.String())
			}
		}
		moment.Stop()
		cancel()
	}
	t.Logf("%d of %d times it was done before it was killed", finished, kills)
	h.must(args...)
	f, err := notebook.Read(filepath.Join(h.dir, "R"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	if err := f.Trials(func(tr *notebook.Trial) error {
		if tr.Failure != nil {
			t.Errorf("failed: %+v", tr)
		}
		if !tr.Warmup {
			seen[fmt.Sprint(tr.Treatment, tr.Round, tr.Index)]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%s stands %d times", what, n)
		}
	}
	if want := rounds * len(f.Study.Treatments); len(seen) != want {
		t.Errorf("%d trials, want %d", len(seen), want)
	}
	if out := h.must("clean"); strings.TrimSpace(out) != "Nothing to do." {
		t.Errorf("tare clean after a whole run: %s", out)
	}
	h.nothingLeft()
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	args := append([]string{"bench", "--image", h.image, "--platforms", "bm,cn:crun|runc", "--instances", "1/512MB", "--rounds", "200", "--out", "R", "--"}, count...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := h.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	trials := filepath.Join(h.dir, "R", "trials.jsonl")
	for { // until some trials are recorded; the notebook gives no notice
		if text, err := os.ReadFile(trials); err == nil && bytes.Count(text, []byte("\n")) > 10 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("no trial within a minute:\n%s", said.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 130 || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("exit status %d, want 130:\n%s", status, said.String())
	}
	h.nothingLeft()
	f, err := notebook.Read(filepath.Join(h.dir, "R"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Sessions); n != 2 || !f.Sessions[1].Reason.Is("interrupted") {
		t.Errorf("sessions: %+v", f.Sessions)
	}
}

// A run until claims that was interrupted continues with the same command, and ends when the claims are decided or the time is used
// up.
func TestUntilClaimsGoesOn(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	// A shop with the name and parameters of shipped claims: redis would need a root of packages, which takes a minute to make.
	h.shop()
	asked := strings.NewReplacer("name: shop", "name: network-request", `"20", "{page}"`, `"200", "{page}"`,
		"params:\n", "params:\n  bytes: {default: \"64\", values: 1 to 64}\n  connect: {default: once, values: once}\n").Replace(shop)
	h.write("shop/workload.yaml", asked)
	h.write("requests.yaml", `name: requests
workloads: [{name: ./shop}]
platforms:
  - platform: bm
  - {platform: cn, engines: [crun|runc], provisioning: [vanilla, pinned], networks: [host, bridge]}
instances: [1/512MB]
claims: [network]
design: {rounds: {floor: 3, cap: 6}, trials: 1, warmups: 1, timeout: 1m}
`)
	args := []string{"run", "./requests.yaml", "--only", "provisioning=pinned", "--until-claims", "--out", "R"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := h.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until the third round; the notebook gives no notice
		f, err := notebook.Read(filepath.Join(h.dir, "R"))
		if err == nil && slices.ContainsFunc(f.Guests, func(g notebook.Guest) bool { return g.Round == 2 }) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("no third round within a minute:\n%s", said.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is our interrupt
	if status := cmd.ProcessState.ExitCode(); status != 130 || !strings.Contains(said.String(), "round 1: 0 environments done") {
		t.Fatalf("exit status %d, want 130:\n%s", status, said.String())
	}
	h.nothingLeft()
	before := h.trials("R")
	_, errs, status := h.run(append(args, "--time-budget", "15s")...)
	after := h.trials("R")
	if status != 0 || len(after) <= len(before) || !reflect.DeepEqual(after[:len(before)], before) {
		t.Fatalf("going on: exit status %d, %d trials after %d:\n%s", status, len(after), len(before), errs)
	}
	seen, reached := map[string]bool{}, 0
	for i, tr := range after {
		if tr.Warmup {
			continue
		}
		which := fmt.Sprint(tr.Treatment, tr.Round, tr.Index)
		if tr.Failure != nil || seen[which] || i >= len(before) && tr.Round < reached {
			t.Errorf("trial %d, round %d of %s after round %d: %q; seen before: %v", tr.Index, tr.Round, tr.Treatment, reached, tr.Failure, seen[which])
		}
		seen[which], reached = true, max(reached, tr.Round)
	}
	f, err := notebook.Read(filepath.Join(h.dir, "R"))
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]string{"precise-enough": "Every claim that this host can test is decided.", "time-budget": "The time budget is used up"}
	var reasons []string
	for _, s := range f.Sessions {
		reasons = append(reasons, strings.TrimSpace(s.Event+" "+s.Reason.String()))
	}
	reason := f.Sessions[len(f.Sessions)-1].Reason.String()
	if len(reasons) != 4 || reasons[1] != "end interrupted" || ends[reason] == "" || !strings.Contains(errs, ends[reason]) {
		t.Errorf("sessions %q:\n%s", reasons, errs)
	}
	var verdicts []struct{ ID, Verdict, Why string }
	if err := json.Unmarshal([]byte(h.must("claims", "R", "--study", "network", "--format", "json")), &verdicts); err != nil {
		t.Fatal(err)
	}
	is := map[string]string{}
	for _, v := range verdicts {
		t.Logf("%s: %s: %s", v.ID, v.Verdict, v.Why)
		is[v.ID] = v.Verdict
	}
	// Claims stay open for lack of time. What was never measured is not testable.
	for _, id := range []string{"network-host", "network-bridge"} {
		if is[id] == "" || reason == "precise-enough" && is[id] == "not decided" {
			t.Errorf("%s is %q, and the run ended: %s", id, is[id], reason)
		}
	}
	if is["network-macvlan"] != "not testable here" || is["network-vm-stream"] != "not testable here" {
		t.Errorf("verdicts on what was not measured: %v", is)
	}
}

func TestBadInputIsOneLine(t *testing.T) {
	h := newHost(t)
	write := func(name, text string) string {
		path := filepath.Join(h.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return "./" + name
	}
	if err := os.MkdirAll(filepath.Join(h.dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("other/file", "not Tare's")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown study", []string{"run", "nosuch"}, `unknown study "nosuch"`},
		{"missing file", []string{"run", "./nosuch.yaml"}, "nosuch.yaml: no such file"},
		{"malformed YAML", []string{"run", write("bad.yaml", "name: x\n  y: [")}, "bad.yaml:"},
		{"unknown key", []string{"run", write("key.yaml", "name: x\nplatfroms: []\n")}, "key.yaml:2: unknown key platfroms"},
		{"unknown platform", []string{"bench", "--platforms", "lxd", "--", "true"}, `unknown platform "lxd"`},
		{"unknown engine", []string{"bench", "--platforms", "cn:lxd", "--", "true"}, `unknown engine "lxd"`},
		{"unknown instance", []string{"bench", "--instances", "huge", "--", "true"}, `unknown size "huge"`},
		{"unknown flag", []string{"run", "quick", "--fast"}, "unknown flag: --fast"},
		{"unknown accelerator", []string{"run", "quick", "--accel", "xen"}, `--accel "xen"`},
		{"an end that is none", []string{"run", "quick", "--until", "soon"}, `--until "soon": use --precision 1%, --decide 2% or --until-claims`},
		{"a precision that is none", []string{"run", "quick", "--precision", "soon"}, `--precision "soon": must be a percentage such as 1%`},
		{"two ends", []string{"run", "quick", "--precision", "1%", "--rounds", "3"}, "--precision and --rounds: only one of them is allowed"},
		{"no command", []string{"bench"}, "names no command"},
		{"image without the command", []string{"bench", "--image", h.image, "--platforms", "bm,cn:crun|runc", "--", "nosuchcommand"}, "nosuchcommand"},
		{"command that fails", []string{"bench", "--image", h.image, "--platforms", "bm", "--", "false"}, "exit status 1"},
		{"no such image", []string{"bench", "--image", "./nosuchimage", "--platforms", "bm", "--", "true"}, "nosuchimage"},
		{"not an image", []string{"bench", "--image", "./other", "--platforms", "bm", "--", "true"}, "other"},
		{"input that is not there", []string{"bench", "--image", h.image, "--platforms", "bm", "--input", "nosuch", "--", "true"}, "nosuch"},
		{"folder of somebody's", []string{"bench", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--rounds", "1", "--out", "other", "--", "true"}, "not Tare's"},
		{"summary of no folder", []string{"summary", "nosuch"}, "nosuch"},
		{"summary of another folder", []string{"summary", "other"}, "other"},
		{"nothing fits", []string{"bench", "--image", h.image, "--platforms", "bm,cn:crun|runc", "--instances", "16xlarge", "--", "true"}, "it needs 64 CPUs"},
		{"Docker is not there", []string{"bench", "--image", h.image, "--platforms", "cn:docker", "--", "true"}, "Docker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "Docker is not there" {
				t.Setenv("DOCKER_HOST", "unix:///nosuch/docker.sock")
			}
			_, errs, status := h.run(c.args...)
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			last := lines[len(lines)-1]
			if status == 0 || !strings.HasPrefix(last, "tare: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit status %d:\n%s\nwant a last line with %q", status, errs, c.want)
			}
			if ofLine := slices.Contains([]string{"unknown platform", "unknown engine", "unknown instance", "unknown flag", "unknown accelerator", "two ends", "no command"}, c.name); ofLine && status != wrongUse {
				t.Errorf("exit status %d, want %d for a wrong command line", status, wrongUse)
			}
		})
	}
	h.nothingLeft()
}

func TestAnotherStudyInTheFolderIsRefused(t *testing.T) {
	h := newHost(t)
	base := []string{"bench", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--out", "R"}
	h.must(append(base, "--rounds", "1", "--", "true")...)
	for name, args := range map[string][]string{
		"command": append(slices.Clone(base), "--rounds", "1", "--", "sleep", "0"),
		"rounds":  append(slices.Clone(base), "--rounds", "2", "--", "true"),
	} {
		if _, errs, status := h.run(args...); status == 0 || !strings.Contains(errs, "name another folder with --out") {
			t.Errorf("another %s: exit status %d: %s", name, status, errs)
		}
	}
	// A folder that is cut in the middle of its last line continues; the torn trial is repeated.
	path := filepath.Join(h.dir, "R", "trials.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	h.must(append(base, "--rounds", "1", "--", "true")...)
	after, err := os.ReadFile(path)
	if err != nil || bytes.Count(after, []byte("\n")) < bytes.Count(text, []byte("\n")) {
		t.Errorf("after the cut: %s %v", after, err)
	}
}

func TestNoSpaceLeft(t *testing.T) {
	h := newHost(t)
	small := filepath.Join(h.dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	_, errs, status := h.run(append([]string{"bench", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--rounds", "400", "--out", "small/R", "--"}, "true")...)
	if status == 0 || !strings.Contains(errs, "no space left") {
		t.Errorf("exit status %d:\n%s", status, errs)
	}
	h.nothingLeft()
}

func TestReadingNeedsNoRoot(t *testing.T) {
	h := newHost(t)
	h.must("bench", "--image", h.image, "--platforms", "bm", "--instances", "1/512MB", "--rounds", "2", "--out", "R", "--", "true")
	for d := h.dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) { // t.TempDir belongs to root
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(h.dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(h.dir, "R2"), os.DirFS(filepath.Join(h.dir, "R"))); err != nil {
		t.Fatal(err)
	}
	asNobody := func(args ...string) (string, error) {
		cmd := h.command(t.Context(), args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	reading := [][]string{{"study", "list"}, {"version"}, {"man", out}, {"study", "show", "quick"}, {"schema", "study"}, {"report", "R", "--out", out}, {"compare", "R", "R2"}}
	for _, c := range deskCommands() {
		if shells := len(c.ValidArgs) > 0; !shells && !slices.ContainsFunc(reading, func(args []string) bool { return args[0] == c.Name() }) {
			reading = append(reading, []string{c.Name(), "R"})
		}
	}
	for _, args := range reading {
		if said, err := asNobody(args...); err != nil && !(args[0] == "explain" && strings.Contains(said, "--explain")) { // nothing was traced
			t.Errorf("tare %v as nobody: %v: %s", args, err, said)
		}
	}
	if said, err := asNobody("report", "R"); err == nil || !strings.Contains(said, "permission denied; name a folder that you may write to with --out") {
		t.Errorf("tare report as nobody into root's folder: %v: %s", err, said)
	}
	if said, err := asNobody("run", "quick"); err == nil || !strings.Contains(said, "root is needed to measure") {
		t.Errorf("tare run as nobody: %v: %s", err, said)
	}
}
