//go:build linux

package ruler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/notebook"
)

// The test binary is also the ruler that the tests talk to, as the program tare is in a guest.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "ruler":
		os.Exit(Main(os.Args[2:]))
	case os.Getenv("RULER_TEST_TRACER") != "":
		if err := testTracer(os.Getenv("RULER_TEST_TRACER"), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv("RULER_TEST_SCRATCH") != "":
		traceTime = 3 * time.Second
		f := os.NewFile(3, "stream")
		syscall.CloseOnExec(3)
		c, err := net.FileConn(f)
		f.Close()
		proc, perr := os.OpenRoot("/proc")
		if err = errors.Join(err, perr); err == nil {
			err = Serve(c, Options{Proc: proc, Scratch: os.Getenv("RULER_TEST_SCRATCH"), Tracer: os.Getenv("RULER_TEST_PROGRAM"), Machine: os.Getenv("RULER_TEST_MACHINE") != ""})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// need skips a test whose component is absent, or fails it where all are required.
func need(t testing.TB, ok bool, what string) {
	t.Helper()
	require.That(t, ok, what)
}

// guestUnderTest is a real ruler in a process of its own.
type guestUnderTest struct {
	*Client
	cmd     *exec.Cmd
	scratch string
	stderr  *strings.Builder
}

// start runs a ruler and connects to it. Its end is checked: it must go by itself when the stream ends.
func start(t testing.TB, command func(fd *os.File) *exec.Cmd) *guestUnderTest {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	host, guest := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "guest")
	conn, err := net.FileConn(host)
	host.Close()
	if err != nil {
		guest.Close()
		t.Fatal(err)
	}
	g := &guestUnderTest{stderr: &strings.Builder{}}
	g.cmd = command(guest)
	g.cmd.Stderr = g.stderr
	err = g.cmd.Start()
	guest.Close()
	if err != nil {
		conn.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.Client != nil {
			g.Close()
		} else {
			conn.Close()
		}
		gone := make(chan error, 1)
		go func() { gone <- g.cmd.Wait() }()
		select {
		case <-gone:
		case <-time.After(time.Minute):
			g.cmd.Process.Kill()
			<-gone
			t.Errorf("the ruler did not end when its stream did")
		}
		if g.stderr.Len() > 0 {
			t.Logf("the ruler said: %s", g.stderr)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if g.Client, err = Connect(ctx, conn); err != nil {
		t.Fatalf("%v; the ruler said: %s", err, g.stderr)
	}
	return g
}

func startHere(t testing.TB, env ...string) *guestUnderTest {
	t.Helper()
	scratch := t.TempDir()
	g := start(t, func(fd *os.File) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RULER_TEST_SCRATCH="+scratch, "GORACE=atexit_sleep_ms=0")
		cmd.Env = append(cmd.Env, env...)
		cmd.ExtraFiles = []*os.File{fd}
		return cmd
	})
	g.scratch = scratch
	return g
}

const hostPath = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

func sh(script string) Order {
	return Order{Argv: []string{"sh", "-c", script}, Env: []string{hostPath}, Timeout: 20 * time.Second, OutputLimit: 4096}
}

func (g *guestUnderTest) mustRun(t testing.TB, o Order) (Result, time.Duration) {
	t.Helper()
	r, host, err := g.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v: %v; the ruler said: %s", o.Argv, err, g.stderr)
	}
	return r, host
}

func TestHello(t *testing.T) {
	g := startHere(t)
	h := g.Hello()
	if h.PID != g.cmd.Process.Pid || h.Version != ProtocolVersion {
		t.Errorf("hello %+v of process %d", h, g.cmd.Process.Pid)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if h.Kernel != strings.TrimSpace(string(release)) {
		t.Errorf("kernel %q, want %q", h.Kernel, release)
	}
	if len(h.CPUFlags)+h.Sockets+h.Threads+h.Nodes > 0 || h.Memory < 64<<20 {
		t.Errorf("hello %+v of a guest that is not a machine of its own", h)
	}
	if _, err := g.Cost(t.Context(), 1); err != nil || g.RoundTrip() <= 0 {
		t.Errorf("round trip %v after an order, %v", g.RoundTrip(), err)
	}
}

func TestHelloOfAMachine(t *testing.T) {
	if h := startHere(t, "RULER_TEST_MACHINE=1").Hello(); len(h.CPUFlags) == 0 || h.Sockets < 1 || h.Threads < 1 || h.Nodes < 1 {
		t.Errorf("hello %+v", h)
	}
}

func TestResults(t *testing.T) {
	g := startHere(t)
	for _, c := range []struct {
		script         string
		exit           int
		signal         string
		stdout, stderr string
	}{
		{"exit 0", 0, "", "", ""},
		{"echo out; echo err >&2; exit 7", 7, "", "out\n", "err\n"},
		{"exit 255", 255, "", "", ""},
		{"kill -SEGV $$", 0, "SIGSEGV", "", ""},
		{"kill -9 $$", 0, "SIGKILL", "", ""},
		{"kill -36 $$", 0, "SIG36", "", ""},
		{"cat; echo end", 0, "", "end\n", ""}, // nothing to read, and that at once
		{"trap '' PIPE; trap", 0, "", "trap -- '' PIPE\n", ""},
		{"grep -E 'SigIgn|SigBlk' /proc/self/status", 0, "", "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", ""},
		{"ls /proc/self/fd | wc -l", 0, "", "4\n", ""}, // 0, 1, 2 and the folder itself
		{"pwd", 0, "", g.scratch + "\n", ""},
	} {
		r, _ := g.mustRun(t, sh(c.script))
		if r.Error != "" || r.Exit != c.exit || r.Signal != c.signal || string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr || r.Truncated || r.TimedOut {
			t.Errorf("%s: %+v, stdout %q, stderr %q", c.script, r, r.Stdout, r.Stderr)
		}
		if r.Elapsed <= 0 || r.MaxRSS <= 0 || r.MinFlt <= 0 {
			t.Errorf("%s: unmeasured: %+v", c.script, r)
		}
	}
}

func TestOrderIsKept(t *testing.T) {
	g := startHere(t)
	o := sh("id -u; id -g; id -G; echo $FOO; pwd; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo own session; cat /proc/self/oom_score_adj")
	o.UID, o.GID, o.Dir = 65534, 65533, "/usr"
	o.Env = append(o.Env, "FOO=bar baz")
	r, _ := g.mustRun(t, o)
	adj, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	if want := "65534\n65533\n65533\nbar baz\n/usr\nown session\n" + string(adj); string(r.Stdout) != want {
		t.Errorf("%q, want %q; %s %s", r.Stdout, want, r.Stderr, r.Error)
	}
	for _, c := range []struct {
		uid, gid uint32
		groups   []uint32
		want     []string
	}{
		{1000, 100, []uint32{4294967294, 3000, 100}, []string{"100", "3000", "4294967294"}}, {1000, 100, nil, []string{"100"}},
		{0, 0, []uint32{10}, []string{"0", "10"}}, {0, 0, []uint32{0}, []string{"0"}}, {0, 0, nil, []string{"0"}}, // not the ruler's own
	} {
		o := sh("id -G")
		o.UID, o.GID, o.Groups, o.Dir = c.uid, c.gid, c.groups, "/usr"
		r, _ := g.mustRun(t, o)
		got := strings.Fields(string(r.Stdout))
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("%d:%d with %d has the groups %v, want %v; %s", c.uid, c.gid, c.groups, got, c.want, r.Error)
		}
	}
	o = sh("pwd; stat -c '%a %u' .")
	o.Dir = filepath.Join(t.TempDir(), "not", "there")
	if r, _ := g.mustRun(t, o); string(r.Stdout) != o.Dir+"\n755 0\n" {
		t.Errorf("%q in %s; %s", r.Stdout, o.Dir, r.Error)
	}
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	want := string(adj)
	if mayProtect(t) {
		want = "-1000\n"
	}
	if string(own) != want {
		t.Errorf("the ruler's own score is %q, want %q", own, want)
	}
}

// mayProtect says whether a process made by this one may lower its OOM score (CAP_SYS_RESOURCE).
func mayProtect(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return caps>>24&1 != 0
		}
	}
	t.Fatal("/proc/self/status has no CapEff")
	return false
}

// The host's clock and the guest's time the same interval.
func TestTimes(t *testing.T) {
	g := startHere(t)
	r, host := g.mustRun(t, sh("sleep 0.5"))
	if r.Elapsed < 500*time.Millisecond || r.Elapsed > 5*time.Second {
		t.Errorf("sleep 0.5 took %v", r.Elapsed)
	}
	if d := host - r.Elapsed; d < 0 || d > 100*time.Millisecond {
		t.Errorf("guest %v, host %v", r.Elapsed, host)
	}
	// The host's is never the shorter one where both have the same clock, however short the work is.
	for range 20 {
		if r, host := g.mustRun(t, sh("exit 0")); host < r.Elapsed {
			t.Errorf("guest %v, host %v", r.Elapsed, host)
		}
	}
	// Work before and after is not in it.
	o := sh("sleep 30 & exec sleep 0.2")
	r, host = g.mustRun(t, o)
	if r.Elapsed > 5*time.Second || host > 5*time.Second {
		t.Errorf("guest %v, host %v", r.Elapsed, host)
	}
	r, _ = g.mustRun(t, sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
	if r.UserS+r.SystemS <= 0.005 || r.UserS+r.SystemS > 1.1*r.Elapsed.Seconds()+0.02 {
		t.Errorf("%v s user, %v s system in %v", r.UserS, r.SystemS, r.Elapsed)
	}
}

func TestFloodIsBounded(t *testing.T) {
	g := startHere(t)
	o := sh("yes 12345678 | head -c 256M; echo; echo last; echo shown >&2")
	r, _ := g.mustRun(t, o)
	if len(r.Stdout) != o.OutputLimit || !r.Truncated || !strings.HasSuffix(string(r.Stdout), "\nlast\n") || string(r.Stderr) != "shown\n" {
		t.Errorf("%d bytes, truncated %v, ends %q; stderr %q", len(r.Stdout), r.Truncated, r.Stdout[max(0, len(r.Stdout)-20):], r.Stderr)
	}
	o = sh("printf 12345; printf 67890 >&2")
	o.OutputLimit = 3
	if r, _ = g.mustRun(t, o); string(r.Stdout) != "345" || string(r.Stderr) != "890" || !r.Truncated {
		t.Errorf("stdout %q, stderr %q, truncated %v", r.Stdout, r.Stderr, r.Truncated)
	}
	o.OutputLimit = 0
	if r, _ = g.mustRun(t, o); len(r.Stdout)+len(r.Stderr) != 0 || !r.Truncated {
		t.Errorf("stdout %q, stderr %q, truncated %v", r.Stdout, r.Stderr, r.Truncated)
	}
	o = sh("yes | head -c 3M; yes | head -c 3M >&2")
	o.OutputLimit = MaxOutput
	if r, _ = g.mustRun(t, o); len(r.Stdout) != MaxOutput || len(r.Stderr) != MaxOutput {
		t.Errorf("%d and %d bytes", len(r.Stdout), len(r.Stderr))
	}
}

// alive lists the processes that have mark among their arguments.
func alive(t testing.TB, mark string) (pids []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		b, _ := os.ReadFile(d) // may be gone
		if strings.Contains("\x00"+string(b), "\x00"+mark+"\x00") {
			pids = append(pids, d)
		}
	}
	return pids
}

// mark is an argument for sleep that no other process has.
func mark(n int) string { return fmt.Sprintf("%d.%d", 1000+n, os.Getpid()) }

func TestNothingIsLeft(t *testing.T) {
	g := startHere(t)
	m := mark(1)
	for _, script := range []string{
		"sleep " + m + " & echo started",
		"setsid sh -c 'setsid sleep " + m + " & (setsid sleep " + m + " &)' & echo started",       // daemons, twice removed
		"sh -c 'trap \"\" TERM HUP INT; sleep " + m + "' & sleep 0.05; echo started",              // does not want to die
		"for i in 1 2 3 4 5 6 7 8 9; do (sleep " + m + " & sleep " + m + ") & done; echo started", // many, holding the pipes
		"(exec 1>&- 2>&-; sh -c 'while :; do sleep " + m + " & sleep 0.01; done') & sleep 0.1; echo started",
	} {
		begin := time.Now()
		r, _ := g.mustRun(t, sh(script))
		if r.Error != "" || !strings.Contains(string(r.Stdout), "started") {
			t.Errorf("%s: %+v %s", script, r, r.Stderr)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: the ruler waited %v for what was left", script, took)
		}
		if left := alive(t, m); len(left) > 0 {
			t.Errorf("%s left %v", script, left)
		}
	}
}

func TestTimeout(t *testing.T) {
	g := startHere(t)
	m := mark(2)
	o := sh("trap '' TERM; echo before; sleep " + m + " & sleep " + m)
	o.Timeout = 200 * time.Millisecond
	r, _ := g.mustRun(t, o)
	if !r.TimedOut || r.Signal != "SIGKILL" || r.Elapsed < 150*time.Millisecond || r.Elapsed > time.Minute || string(r.Stdout) != "before\n" {
		t.Errorf("%+v %s", r, r.Stdout)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if r, _ := g.mustRun(t, sh("exit 3")); r.Exit != 3 || r.TimedOut {
		t.Errorf("the next one: %+v", r)
	}
}

func TestCancel(t *testing.T) {
	g := startHere(t)
	m := mark(3)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		// Cancelled once the process surely runs: it makes a file, and this waits for it.
		go func() {
			defer cancel()
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if len(alive(t, m)) > 0 {
					return
				}
			}
		}()
		begin := time.Now()
		_, _, err := g.Run(ctx, sh("sleep "+m+" & sleep "+m))
		cancel()
		if !errors.Is(err, context.Canceled) || time.Since(begin) > 2*time.Minute {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		if left := alive(t, m); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		if r, _ := g.mustRun(t, sh("exit 4")); r.Exit != 4 || r.Error != "" {
			t.Errorf("the next one: %+v", r)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.Cost(ctx, MaxCost); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cost: %v", err)
	}
	if _, err := g.Ping(t.Context()); err != nil {
		t.Errorf("ping after a cancelled cost: %v", err)
	}
}

func TestCannotStart(t *testing.T) {
	g := startHere(t)
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(locked, "x")
	if err := os.WriteFile(inside, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		order Order
		want  []string
	}{
		{Order{Argv: []string{"no-such-thing"}, Env: []string{"PATH=/bin:/nowhere"}}, []string{"no such command", "no-such-thing", "/bin:/nowhere"}},
		{Order{Argv: []string{"no-such-thing"}}, []string{"no such command", defaultPath}},
		{Order{Argv: []string{dir + "/absent"}}, []string{"no such command", dir + "/absent"}},
		{Order{Argv: []string{"./absent"}}, []string{"no such command", g.scratch + "/absent"}},
		{Order{Argv: []string{dir}}, []string{"is not a file"}},
		{Order{Argv: []string{write("plain", "x", 0o644)}}, []string{"/plain", "nobody execute", "chmod +x"}},
		{Order{Argv: []string{"plain"}, Env: []string{"PATH=" + dir}}, []string{"/plain", "nobody execute"}},
		{Order{Argv: []string{write("text", "hello", 0o755)}}, []string{"/text", "neither a program", "#!"}},
		{Order{Argv: []string{write("script", "#!/no/such/perl -w\n", 0o755)}}, []string{"/script", "does not have its interpreter, /no/such/perl"}},
		{Order{Argv: []string{inside}, UID: 65534, GID: 65534}, []string{inside, "user 65534", "permission denied"}},
		{Order{Argv: []string{"true"}, Env: []string{hostPath}, Dir: "/etc/passwd/dir"}, []string{"folder to run in", "/etc/passwd/dir"}},
		{Order{Argv: []string{"true"}, Env: []string{hostPath}, Dir: "/etc/passwd"}, []string{"is not a folder"}},
	} {
		c.order.Timeout = time.Second
		r, _ := g.mustRun(t, c.order)
		for _, w := range c.want {
			if !strings.Contains(r.Error, w) {
				t.Errorf("%v: %q does not say %q", c.order.Argv, r.Error, w)
			}
		}
	}
	for _, o := range []Order{
		{}, {Argv: []string{""}, Timeout: 1}, {Argv: []string{"a\x00b"}, Timeout: 1}, {Argv: []string{"a"}},
		{Argv: []string{"a"}, Timeout: -1}, {Argv: []string{"a"}, Timeout: 1, OutputLimit: MaxOutput + 1},
		{Argv: []string{"a"}, Timeout: 1, Env: []string{"novalue"}}, {Argv: []string{"a"}, Timeout: 1, Dir: "relative"},
		{Argv: []string{"a"}, Timeout: 1, Groups: make([]uint32, MaxGroups+1)},
	} {
		if _, _, err := g.Run(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if r, _ := g.mustRun(t, sh("exit 5")); r.Exit != 5 {
		t.Errorf("after all that: %+v", r)
	}
}

func TestLookUpInOwnFolder(t *testing.T) {
	g := startHere(t)
	r, _ := g.mustRun(t, sh("printf '#!/bin/sh\\necho mine' > own; chmod +x own"))
	if r.Exit != 0 || r.Error != "" {
		t.Fatalf("%+v", r)
	}
	for _, o := range []Order{
		{Argv: []string{"./own"}}, {Argv: []string{"own"}, Env: []string{"PATH=/nowhere:"}},
	} {
		o.Timeout, o.OutputLimit, o.KeepScratch = 10*time.Second, 100, true
		if r, _ := g.mustRun(t, o); string(r.Stdout) != "mine\n" {
			t.Errorf("%v: %+v", o.Argv, r)
		}
	}
}

func TestGuestDies(t *testing.T) {
	g := startHere(t)
	m := mark(4)
	go func() {
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && len(alive(t, m)) == 0; {
			time.Sleep(time.Millisecond)
		}
		g.cmd.Process.Kill()
	}()
	begin := time.Now()
	_, _, err := g.Run(t.Context(), sh("exec sleep "+m))
	if !errors.Is(err, ErrGone) || time.Since(begin) > 2*time.Minute {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	if _, err := g.Ping(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
	for end := time.Now().Add(time.Minute); len(alive(t, m)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the process outlived its ruler: %v", alive(t, m))
		}
	}
}

func TestHostDies(t *testing.T) {
	g := startHere(t)
	m := mark(5)
	ran := make(chan error, 1)
	go func() {
		_, _, err := g.Run(context.Background(), sh("(setsid sleep "+m+" &) ; sleep "+m))
		ran <- err
	}()
	for end := time.Now().Add(time.Minute); len(alive(t, m)) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the order did not start")
		}
	}
	g.Close()
	if err := <-ran; !errors.Is(err, ErrGone) {
		t.Errorf("the order in progress: %v", err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("the ruler: %v: %s", err, g.stderr)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestCost(t *testing.T) {
	g := startHere(t)
	ds, err := g.Cost(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if d < time.Microsecond || d > 5*time.Second {
			t.Errorf("an empty process took %v", d)
		}
	}
	if len(ds) != 50 {
		t.Errorf("%d durations", len(ds))
	}
	for program, want := range map[string]string{"/bin/false": "exit code 1", "/nowhere": "no such command"} {
		if _, err := g.Cost(t.Context(), 3, program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", program, err, want)
		}
	}
	if size := binary.Size(report{}) + MaxCost*8; size > 64<<10 {
		t.Errorf("%d processes' times are %d bytes, more than a pipe holds", MaxCost, size)
	}
	for _, n := range []int{0, -1, MaxCost + 1} {
		if _, err := g.Cost(t.Context(), n); err == nil {
			t.Errorf("%d processes were taken", n)
		}
	}
}

// Neither open files nor goroutines nor processes grow with the number of trials. (Threads and goroutines of
// the ruler are seen as its memory and threads.)
func TestNoLeak(t *testing.T) {
	g := startHere(t)
	pid := g.cmd.Process.Pid
	count := func() (files, threads int) {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		ts, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds), len(ts)
	}
	rss := func() int64 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			t.Fatal(err)
		}
		var size, resident int64
		if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
			t.Fatal(err)
		}
		return resident * int64(os.Getpagesize())
	}
	o := Order{Argv: []string{"/bin/true"}, Timeout: 10 * time.Second, OutputLimit: 64 << 10}
	for range 100 {
		g.mustRun(t, o)
	}
	files, threads := count()
	before := rss()
	for range 1000 {
		if r, _ := g.mustRun(t, o); r.Exit != 0 || r.Error != "" {
			t.Fatalf("%+v", r)
		}
	}
	files2, threads2 := count()
	// Go's runtime keeps a thread for each system call that blocked at the same time: on a busy host these become a few more.
	const few = 50
	if files2 > files || threads2 > threads+few {
		t.Errorf("after 1000 trials %d open files, was %d; %d threads, was %d", files2, files, threads2, threads)
	}
	if after := rss(); after > before+16<<20 {
		t.Errorf("after 1000 trials %d bytes, was %d", after, before)
	}
}

// What an order says of its process's pages holds for it, and for what it starts; another order has all.
func TestPagesOfAnOrder(t *testing.T) {
	g := startHere(t)
	for _, small := range []bool{false, true, false} {
		o := sh(`sed -n 's/^THP_enabled:[[:space:]]*//p' /proc/self/status`)
		o.SmallPages = small
		want := "1\n"
		if small {
			want = "0\n"
		}
		r, _ := g.mustRun(t, o)
		if string(r.Stdout) != want {
			t.Errorf("small %v: %q, want %q; %+v %s", small, r.Stdout, want, r.Error, r.Stderr)
		}
	}
}

// A program that is to ask for merging has asked, and what it starts has too; another has not.
func TestAMergeableOrder(t *testing.T) {
	if _, err := unix.PrctlRetInt(unix.PR_GET_MEMORY_MERGE, 0, 0, 0, 0); err != nil {
		t.Skip("this kernel merges no whole processes: ", err)
	}
	g := startHere(t)
	for _, asked := range []bool{false, true, false} {
		o := sh(`grep ^ksm_merge_any: /proc/self/ksm_stat`)
		o.Mergeable = asked
		want := "ksm_merge_any: no\n"
		if asked {
			want = "ksm_merge_any: yes\n"
		}
		if r, _ := g.mustRun(t, o); string(r.Stdout) != want {
			t.Errorf("asked %v: %q, want %q; %+v %s", asked, r.Stdout, want, r.Error, r.Stderr)
		}
	}
}

// A run finds what an earlier one has left in the guest where both are asked to look, and not what is emptied before each.
func TestWhatAnOrderFinds(t *testing.T) {
	g := startHere(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(here, "home-") // the ruler has this host's /tmp, where others have files too, perhaps too many to look at
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	find := func(script string) *notebook.Found {
		o := sh(script)
		o.Env, o.Remains = append(o.Env, "HOME="+home), true
		r, _ := g.mustRun(t, o)
		if r.Error != "" || r.Exit != 0 {
			t.Fatalf("%+v %s", r, r.Stderr)
		}
		return r.Found
	}
	// Within one tick of the kernel's clock nothing is said; the work waits for the next.
	const stamp = `[ -e $HOME/stamp ] || touch $HOME/stamp; touch scratch; until touch $HOME/.t && [ $HOME/.t -nt $HOME/stamp ]; do rm $HOME/.t; done; rm $HOME/.t`
	if f := find(stamp); f != nil {
		t.Errorf("the first finds %+v", f)
	}
	for i := range 2 {
		if f := find(stamp); f == nil || f.N != 1 || len(f.Files) != 1 || f.Files[0] != home+"/stamp" {
			t.Errorf("run %d finds %+v", i+2, f)
		}
	}
	o := sh("true")
	o.Env = append(o.Env, "HOME="+home)
	if r, _ := g.mustRun(t, o); r.Found != nil {
		t.Errorf("one that is not asked finds %+v", r.Found)
	}
}

// What a guest says that it found is bounded.
func TestWhatAGuestSaysItFoundIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		found notebook.Found
		ok    bool
	}{
		"one":           {notebook.Found{Files: []string{"/tmp/a"}, N: 1}, true},
		"more":          {notebook.Found{Files: []string{"/a", "/b", "/c"}, N: 4000}, true},
		"none":          {notebook.Found{N: 1}, false},
		"too many":      {notebook.Found{Files: make([]string, notebook.MostFound+1), N: 9}, false},
		"fewer":         {notebook.Found{Files: []string{"/a", "/b"}, N: 1}, false},
		"a long name":   {notebook.Found{Files: []string{strings.Repeat("x", maxName+1)}, N: 1}, false},
		"a minus count": {notebook.Found{Files: []string{"/a"}, N: -1}, false},
	} {
		err := (&Result{Found: &c.found}).check(&Order{Remains: true}, time.Second)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&Result{Found: &notebook.Found{Files: []string{"/a"}, N: 1}}).check(&Order{}, time.Second); !errors.Is(err, ErrProtocol) {
		t.Errorf("what nobody asked for: %v", err)
	}
}

// No thread of the ruler is in wait4 while a trial runs: see Serve.
func TestRulerSleepsDuringATrial(t *testing.T) {
	g := startHere(t)
	r, _ := g.mustRun(t, sh(fmt.Sprintf("cat /proc/%d/task/*/syscall", g.cmd.Process.Pid)))
	if r.Exit != 0 || len(r.Stdout) == 0 {
		t.Skipf("this user may not see what the ruler's threads do: %s", r.Stderr)
	}
	for line := range strings.Lines(string(r.Stdout)) {
		if strings.HasPrefix(line, fmt.Sprint(unix.SYS_WAIT4, " ")) {
			t.Errorf("a thread is in wait4:\n%s", r.Stdout)
		}
	}
}
