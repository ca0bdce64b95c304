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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/live"
	"tare/lab/proc"
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
	// The server sleeps for 3 ms; the client adds the time until it is woken and its own.
	if client := sum / n; parts > client || parts < 0.0029 {
		t.Errorf("a request took %.5f s, the client says %.5f s: %v", parts, client, a.Mean)
	}
	if o.Replay == nil || o.Replay.Of != notebook.RequestsServed || o.Replay.N != n || math.Abs(o.Replay.Seen.Mean.Seconds-parts) > 1e-6 {
		t.Errorf("replayed %+v, notes %v", o.Replay, o.Said)
	}
}

// For a service whose four threads share out 48 ms of CPU time every 80 ms, a CPU set of one CPU does not help: nothing is faster there than that
// work. Without the limit it is no slower. `scripts/bench predictions` compares predictions with what is measured after the change.
func TestWhatIf(t *testing.T) {
	cpus, err := proc.OnlineCPUs()
	require.That(t, err == nil && len(cpus) > 1, "two CPUs")
	g := newGroup(t, map[string]string{"cpu.cfs_quota_us|cpu.max": "75000 100000"})
	serve(t, g, cpus[:2], "burst", "4", "48", "80")
	target, err := live.Find(t.Context(), g.dirs["cpu"])
	if err != nil {
		t.Fatal(err)
	}
	custom, err := ParseChange("limit=0.5,period=20ms")
	if err != nil {
		t.Fatal(err)
	}
	o, err := Watch(t.Context(), target, Options{For: 8 * time.Second, If: []Change{custom}})
	if err != nil {
		t.Fatal(err)
	}
	asleep, seconds := 0.0, 0.0
	for _, slice := range o.Slices {
		asleep, seconds = asleep+slice.Wall[notebook.WallSleep], seconds+slice.Seconds
	}
	if asleep < 0.1*seconds {
		t.Skipf("the host is so busy that the service slept for %.1f of %.1f s: it sleeps for half of the time if it gets its CPU time, and is timed from when it wakes", asleep, seconds)
	}
	r := o.Replay
	if r == nil || r.Of != notebook.RequestsWakes || r.N < fewestTimed || !(r.Seen.Mean.Seconds > 0.02) {
		t.Fatalf("%+v, notes %v", r, o.Said)
	}
	if slices.ContainsFunc(o.Said, func(m *notebook.Message) bool { return m.Code == "replay-off" }) {
		t.Skip("the host is so busy that a replay does not come near to what was measured, and it says so")
	}
	if len(r.Changes) != 6 {
		t.Fatalf("%+v, notes %v", r.Changes, o.Said)
	}
	unlimited, one, half := r.Changes[0], r.Changes[4], r.Changes[5]
	if unlimited.Limit != 0 || unlimited.CPUs != 2 || one.Limit != 0 || one.CPUs != 1 || half.Limit != 0.5 || half.PeriodS != 0.02 {
		t.Fatalf("%+v", r.Changes)
	}
	if got := one.Times.Mean.Seconds; got < 0.045 || got < unlimited.Times.Mean.Seconds {
		t.Errorf("one CPU: a mean of %.4f s for 48 ms of work; without a limit %.4f s", got, unlimited.Times.Mean.Seconds)
	}
	if got, now := unlimited.Times.Mean.Seconds, r.Checked.Mean.Seconds; got > 1.02*now || unlimited.Times.ThrottledS != 0 {
		t.Errorf("without the limit: a mean of %.4f s, with it %.4f s; throttled for %v s", got, now, unlimited.Times.ThrottledS)
	}
	if half.Times.ThrottledS < r.Checked.ThrottledS || half.Times.Mean.Seconds < unlimited.Times.Mean.Seconds {
		t.Errorf("half a CPU: %+v", half)
	}
	for _, c := range r.Changes {
		if p := c.Times.P99; !(p.Low <= p.Seconds && p.Seconds <= p.High) {
			t.Errorf("%+v", c)
		}
	}
}

func TestParseChange(t *testing.T) {
	now := notebook.ObservedChange{Limit: 1, PeriodS: 0.1, BurstS: 0.02, CPUs: 1}
	for text, want := range map[string]notebook.ObservedChange{
		"limit=2":                      {Limit: 2, PeriodS: 0.1, BurstS: 0.02, CPUs: 1},
		"limit=none":                   {CPUs: 1},
		"period=20ms,burst=0s":         {Limit: 1, PeriodS: 0.02, CPUs: 1},
		"limit=0.5,period=10ms,cpus=1": {Limit: 0.5, PeriodS: 0.01, BurstS: 0.005, CPUs: 1}, // no larger burst is accepted
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
		"limit=NaN": "0.01 to 1024", "period=2s": "from 1ms to 1s", "period=10": "from 1ms to 1s", "burst=-1s": "0s to 10s", "cpus=0": "must be a whole number from 1 to", "cpus=100000": "must be a whole number from 1 to", "limit=2,": "must be limit",
		"limit=1, limit=2": "limit is there twice", "limit=none,period=10ms": "limit=none has no period", "burst=1ms,limit=none": "and no burst",
	} {
		if _, err := ParseChange(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The kernel accepts no limit of less than 1 ms in a period, and no burst that is larger than that.
func TestAccepted(t *testing.T) {
	for c, want := range map[notebook.ObservedChange]bool{
		{CPUs: 1}:                             true,
		{Limit: 0.1, PeriodS: 0.01}:           true,
		{Limit: 0.05, PeriodS: 0.01}:          false,
		{Limit: 1, PeriodS: 0.1, BurstS: 0.1}: true,
		{Limit: 1, PeriodS: 0.1, BurstS: 0.2}: false,
	} {
		if got := accepted(c); got != want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
