//go:build linux

package observe

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/live"
	"tare/lab/proc"
	"tare/lab/replay"
	"tare/notebook"
)

// asServer in the environment makes the test program a server.
const asServer = "TARE_OBSERVE_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := server(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// server answers each request after a sleep of 3 ms, until its input ends. It prints its port.
func server() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test has ended, however
		os.Exit(0)
	}()
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * time.Millisecond)
		fmt.Fprintln(w, "hello")
	}))
}

// Every request is seen, with the time that it took, and its parts add up to that.
func TestRequestsSeen(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it may have been killed
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	target, err := live.Find(t.Context(), strconv.Itoa(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	began, asked := make(chan struct{}), make(chan error, 1)
	sum := 0.0
	go func() {
		<-began
		client := &http.Client{Timeout: programTime}
		for range n {
			from := time.Now()
			r, err := client.Get("http://127.0.0.1:" + strings.TrimSpace(port))
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			if sum += time.Since(from).Seconds(); err != nil {
				asked <- err
				return
			}
		}
		asked <- nil
	}()
	o, err := Watch(t.Context(), target, Options{For: 3 * time.Second, Began: func() { close(began) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	for _, m := range o.Said {
		require.That(t, m.Code != "requests-unseen", "the tracepoints of sockets (Linux 6.3 or later)")
	}
	a := o.Requests
	if a == nil || a.N != n {
		t.Fatalf("requests %+v, want %d; notes %v", a, n, o.Said)
	}
	parts := 0.0
	for _, seconds := range a.Mean {
		parts += seconds
	}
	// The client adds the time until it is woken and its own.
	if client := sum / n; parts > client || parts < 0.0029 || parts < client-0.002 {
		t.Errorf("a request took %.5f s, the client says %.5f s: %v", parts, client, a.Mean)
	}
	if o.Replay == nil || o.Replay.Of != notebook.ReplayedRequests || o.Replay.N != n || math.Abs(o.Replay.Seen.Mean.Seconds-parts) > 1e-6 {
		t.Errorf("replayed %+v, notes %v", o.Replay, o.Said)
	}
}

// latencies are how long the requests took since they were last asked for, in seconds.
func (s *service) latencies() (mean float64, n int) {
	s.t.Helper()
	if _, err := s.in.Write([]byte{'!'}); err != nil {
		s.t.Fatal(err)
	}
	said, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range strings.Fields(said) {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		mean += x
		n++
	}
	return mean / float64(n), n
}

// What is predicted for a service in bursts without its CPU limit, and on one CPU of its own, is what is measured when the change is made. `bench
// predictions` compares more services and changes.
func TestWhatIf(t *testing.T) { require.Quiet(t, whatIf) }

func whatIf(t testing.TB) {
	cpus, err := proc.OnlineCPUs()
	require.That(t, err == nil && len(cpus) == 2, "two CPUs")
	g := newGroup(t, map[string]string{"cpu.cfs_quota_us|cpu.max": "75000 100000"})
	s := serve(t, g, nil, "burst", "4", "48", "80")
	target, err := live.Find(t.Context(), g.dirs["cpu"])
	if err != nil {
		t.Fatal(err)
	}
	o, err := Watch(t.Context(), target, Options{For: 8 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if o.Replay == nil || o.Replay.Of != notebook.ReplayedWakes || len(o.Replay.Changes) != 5 {
		t.Fatalf("%+v, notes %v", o.Replay, o.Said)
	}
	measured := func() float64 {
		s.latencies()
		time.Sleep(4 * time.Second)
		mean, n := s.latencies()
		if n < 30 {
			t.Fatalf("%d requests", n)
		}
		return mean
	}
	for _, c := range []struct {
		name string
		now  notebook.ObservedChange
		make func()
	}{
		{"without the limit", o.Replay.Changes[0], func() { g.set(t, "cpu", "cpu.cfs_quota_us|cpu.max", "-1") }},
		{"one CPU", o.Replay.Changes[4], func() { pin(t, s.pid(), cpus[1:]) }},
	} {
		c.make()
		if got, want := c.now.Times.Mean.Seconds, measured(); math.Abs(got-want) > 0.15*want {
			t.Errorf("%s: predicted a mean of %.4f s, measured %.4f s", c.name, got, want)
		}
	}
	if now, one := o.Replay.Seen.P99.Seconds, o.Replay.Changes[4].Times.P99.Seconds; one < 1.2*now {
		t.Errorf("one CPU would help: %.4f s instead of %.4f s", one, now)
	}
}

// pin lets all threads of a process use some CPUs only.
func pin(t testing.TB, pid int, cpus []int) {
	t.Helper()
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	tids, err := proc.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseChange(t *testing.T) {
	now := notebook.ObservedChange{Limit: 1, PeriodS: 0.1, BurstS: 0.02, CPUs: 1}
	for text, want := range map[string]notebook.ObservedChange{
		"limit=2":                      {Limit: 2, PeriodS: 0.1, BurstS: 0.02, CPUs: 1},
		"limit=none":                   {CPUs: 1},
		"period=20ms,burst=0s":         {Limit: 1, PeriodS: 0.02, CPUs: 1},
		"limit=0.5,period=10ms,cpus=1": {Limit: 0.5, PeriodS: 0.01, BurstS: 0.02, CPUs: 1},
	} {
		c, err := ParseChange(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := now
		if c(&got); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	unlimited := notebook.ObservedChange{CPUs: 1}
	c, err := ParseChange("limit=2")
	if err != nil {
		t.Fatal(err)
	}
	if c(&unlimited); unlimited.PeriodS != 0.1 {
		t.Errorf("a limit where there was none: %+v", unlimited)
	}
	for text, want := range map[string]string{
		"": "must be limit, period, burst or cpus", "quota=2": "must be limit, period, burst or cpus", "limit": "0.01 to 1024 cores, or none", "limit=-1": "0.01 to 1024",
		"limit=NaN": "0.01 to 1024", "period=2s": "from 1ms to 1s", "period=10": "from 1ms to 1s", "burst=-1s": "0s to 10s", "cpus=0": "must be a number from 1 to", "cpus=100000": "must be a number from 1 to", "limit=2,": "must be limit",
	} {
		if _, err := ParseChange(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A timeline ends before a gap, and when it has as many events as fit.
func TestTimelineIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		events, before int
		unseen         int64
		left           int
		full           bool
	}{"whole": {5, 3, 0, 5, false}, "a gap": {5, 3, 1, 3, true}, "as many as fit": {mostEvents, 3, 0, mostEvents, true}} {
		l := timeline{events: make([]replay.Event, c.events)}
		if l.bound(c.before, c.unseen); len(l.events) != c.left || l.full != c.full {
			t.Errorf("%s: %d events, full %v", name, len(l.events), l.full)
		}
	}
}
