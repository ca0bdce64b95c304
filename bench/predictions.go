//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/live"
	"tare/lab/observe"
	"tare/lab/proc"
	"tare/notebook"
	"tare/stats"
)

// What the predictions must keep: the median error of the 99th percentile, and how many of the sixteen measured ones lie in their intervals.
const (
	mostMedianError = 0.10
	fewestInside    = 13
)

// measuring is for how long a service is observed, and for how long it is measured under each change.
const measuring = 20 * time.Second

// predicted is a service whose times under other limits are predicted and measured.
type predicted struct {
	name  string
	limit float64 // cores
	start func(ctx context.Context, dir string, g *limitedGroup) (latencies func() ([]float64, error), err error)
}

// predictions compares what `tare observe` predicts for four services under four changes with what is measured after the change was made.
func predictions(ctx context.Context, dir string) error {
	fmt.Println("\nPredicted and measured 99th percentile of response times")
	var off []float64
	inside := 0
	for _, s := range []predicted{{"burst", 0.75, bursts}, {"Go", 0.55, goService}, {"JVM", 0.6, javaService}, {"nginx", 0.5, nginxService}} {
		all, err := s.compare(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, c := range all {
			in := c.now.Times.P99.Low <= c.measured && c.measured <= c.now.Times.P99.High
			if in {
				inside++
			}
			e := c.now.Times.P99.Seconds/c.measured - 1
			off = append(off, math.Abs(e))
			fmt.Printf("  %-6s %-22s predicted %6.1f ms (%.1f to %.1f), measured %6.1f ms: %+.0f %%, inside: %v\n", s.name, c.name,
				1e3*c.now.Times.P99.Seconds, 1e3*c.now.Times.P99.Low, 1e3*c.now.Times.P99.High, 1e3*c.measured, 100*e, in)
		}
	}
	median := stats.Median(off)
	fmt.Printf("  median error %.0f %%; %d of %d measured times inside their intervals\n", 100*median, inside, len(off))
	if median > mostMedianError || inside < fewestInside {
		return fmt.Errorf("the median error is %.0f %% and %d times are inside; must be at most %.0f %% and at least %d", 100*median, inside, 100*mostMedianError, fewestInside)
	}
	return nil
}

// compared is a change, what was predicted for it, and what was measured.
type compared struct {
	name     string
	now      notebook.ObservedChange
	measured float64 // seconds
}

func (s predicted) compare(ctx context.Context, dir string) (all []compared, err error) {
	g, err := newLimitedGroup()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	if err := g.limit(s.limit, notebook.UsualPeriodS); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the service and its load
	latencies, err := s.start(ctx, dir, g)
	if err != nil {
		return nil, err
	}
	target, err := live.Find(ctx, g.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"no limit", "twice the limit", "period of 10 ms", "CPU set"} {
		seen, err := observe.Watch(ctx, target, observe.Options{For: measuring}) // shortly before, because the host's speed wanders
		if err != nil {
			return nil, err
		}
		if seen.Replay == nil || len(seen.Replay.Changes) == 0 {
			return nil, fmt.Errorf("nothing is predicted: %v", seen.Said)
		}
		r := seen.Replay
		i := slices.IndexFunc(r.Changes, func(c notebook.ObservedChange) bool { return s.named(c, seen.Target.HostCPUs) == name })
		if i < 0 {
			return nil, fmt.Errorf("%s is not among the changes: %+v", name, r.Changes)
		}
		p, err := g.under(r.Changes[i], latencies)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("  %-6s as it is: %d %s, measured %.1f ms, replayed %.1f ms\n", s.name, r.N, r.Of, 1e3*r.Seen.P99.Seconds, 1e3*r.Checked.P99.Seconds)
		all = append(all, compared{name, r.Changes[i], p})
	}
	return all, nil
}

// named names the changes that are compared.
func (s predicted) named(c notebook.ObservedChange, host int) string {
	switch {
	case c.Limit == 0 && c.CPUs == host:
		return "no limit"
	case c.Limit == 0:
		return "CPU set"
	case c.Limit > s.limit:
		return "twice the limit"
	case c.PeriodS < notebook.UsualPeriodS:
		return "period of 10 ms"
	}
	return ""
}

// under measures the 99th percentile under a change, and takes the change back.
func (g *limitedGroup) under(c notebook.ObservedChange, latencies func() ([]float64, error)) (p99 float64, err error) {
	before := g.now
	defer func() { err = errors.Join(err, g.limit(before.cores, before.period), g.pin(0)) }()
	if err := errors.Join(g.limit(c.Limit, c.PeriodS), g.pin(c.CPUs)); err != nil {
		return 0, err
	}
	for _, wait := range []time.Duration{2 * time.Second, measuring} { // the first only lets the change take effect
		time.Sleep(wait)
		took, err := latencies()
		if err != nil {
			return 0, err
		}
		slices.Sort(took)
		if len(took) > 0 {
			p99 = stats.Quantile(took, 0.99)
		}
	}
	if p99 == 0 {
		return 0, errors.New("no request was answered")
	}
	return p99, nil
}

// limitedGroup is a cgroup with a CPU limit.
type limitedGroup struct {
	dir string
	v2  bool
	now struct{ cores, period float64 }
}

func newLimitedGroup() (*limitedGroup, error) {
	h, err := cgroup.Scheduled()
	if err != nil {
		return nil, err
	}
	g := &limitedGroup{dir: filepath.Join(h.At, fmt.Sprintf("tare-bench-%d", os.Getpid())), v2: h.V2}
	if h.V2 {
		if err := os.WriteFile(filepath.Join(h.At, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
			return nil, err
		}
	}
	return g, os.Mkdir(g.dir, 0o755)
}

// limit sets the limit; 0 cores: none.
func (g *limitedGroup) limit(cores, period float64) error {
	if period == 0 {
		period = notebook.UsualPeriodS
	}
	us := func(seconds float64) string { return strconv.Itoa(int(math.Round(seconds * 1e6))) }
	write := func(file, text string) error { return os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0) }
	before := g.now.period
	g.now.cores, g.now.period = cores, period
	if g.v2 {
		quota := "max"
		if cores > 0 {
			quota = us(cores * period)
		}
		return write("cpu.max", quota+" "+us(period))
	}
	quota := "-1"
	if cores > 0 {
		quota = us(cores * period)
	}
	if period < before {
		return errors.Join(write("cpu.cfs_quota_us", quota), write("cpu.cfs_period_us", us(period)))
	}
	return errors.Join(write("cpu.cfs_quota_us", "-1"), write("cpu.cfs_period_us", us(period)), write("cpu.cfs_quota_us", quota))
}

// pin lets the group's threads use the last n CPUs; 0: all.
func (g *limitedGroup) pin(n int) error {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return err
	}
	if n == 0 {
		n = len(online)
	}
	pids, err := cgroup.Procs(g.dir)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		tids, err := proc.Threads(pid)
		if err != nil {
			return err
		}
		for _, tid := range tids {
			if err := proc.Bind(tid, online[len(online)-n:]); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("the CPUs of thread %d: %w", tid, err)
			}
		}
	}
	return nil
}

// run starts a program in the group. It ends with ctx.
func (g *limitedGroup) run(ctx context.Context, args ...string) (in io.WriteCloser, out *bufio.Reader, err error) {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, args...)...)
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	go func() { _ = cmd.Wait() }() // it is killed in the end
	return in, bufio.NewReader(pipe), nil
}

// remove kills what is left in the group, and removes it.
func (g *limitedGroup) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndTimeout)
	defer cancel()
	return cgroup.Remove(ctx, g.dir)
}

// bursts starts a program whose four threads share 48 ms of CPU time every 80 ms.
func bursts(ctx context.Context, dir string, g *limitedGroup) (func() ([]float64, error), error) {
	program := filepath.Join(dir, "served")
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-pthread", "-o", program, "lab/observe/testdata/served.c").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc served.c: %w: %s", err, said)
	}
	in, out, err := g.run(ctx, program, "burst", "4", "48", "80")
	if err != nil {
		return nil, err
	}
	if said, err := out.ReadString('\n'); err != nil || said != "ready\n" {
		return nil, fmt.Errorf("served said %q: %w", said, err)
	}
	return func() (all []float64, err error) {
		if _, err := in.Write([]byte{'!'}); err != nil {
			return nil, err
		}
		said, err := out.ReadString('\n')
		if err != nil {
			return nil, err
		}
		for _, f := range strings.Fields(said) {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return nil, err
			}
			all = append(all, x)
		}
		return all, nil
	}, nil
}

// hashes is how many blocks the services of Go and Java hash for a request, which takes some 15 ms.
const hashes = "6000"

func goService(ctx context.Context, dir string, g *limitedGroup) (func() ([]float64, error), error) {
	program := filepath.Join(dir, "hashing")
	if said, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/services/hashing").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, said)
	}
	return hashing(ctx, g, 6, program, hashes)
}

func javaService(ctx context.Context, dir string, g *limitedGroup) (func() ([]float64, error), error) {
	if said, err := exec.CommandContext(ctx, "javac", "-d", dir, "bench/services/Service.java").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac (Debian package default-jdk-headless): %w: %s", err, said)
	}
	latencies, err := hashing(ctx, g, 6, "java", "-cp", dir, "Service", hashes)
	if err != nil {
		return nil, err
	}
	// Until its methods are compiled it is another program.
	const compiled = 300
	for n := 0; n < compiled; {
		time.Sleep(time.Second)
		took, err := latencies()
		if err != nil {
			return nil, err
		}
		n += len(took)
	}
	return latencies, nil
}

// hashing starts a service that prints its port, and a load.
func hashing(ctx context.Context, g *limitedGroup, most int, args ...string) (func() ([]float64, error), error) {
	_, out, err := g.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	port, err := out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	return asking(ctx, "http://127.0.0.1:"+strings.TrimSpace(port)+"/", most), nil
}

// nginxService is nginx, which compresses a file for each request.
func nginxService(ctx context.Context, dir string, g *limitedGroup) (func() ([]float64, error), error) {
	url, err := startNginx(ctx, dir, g, 100_000, "on")
	if err != nil {
		return nil, err
	}
	return asking(ctx, url, 5), nil
}

// nginxPort is where nginx serves.
const nginxPort = 18090

// startNginx starts nginx with a file of so many bytes, which it compresses (on) or not (off), and returns the file's URL.
func startNginx(ctx context.Context, dir string, g *limitedGroup, size int, compresses string) (url string, err error) {
	root := filepath.Join(dir, "nginx-"+compresses)
	if err := errors.Join(os.Mkdir(root, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return "", err
	}
	var text strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for text.Len() < size {
		fmt.Fprintf(&text, "%x word%d\n", rng.IntN(1<<30), rng.IntN(1000))
	}
	conf := fmt.Sprintf(`worker_processes 2; daemon off; pid %[1]s/pid; error_log stderr; events {}
http {
	access_log off; gzip %[2]s; gzip_comp_level 9; gzip_types text/plain; types { text/plain txt; }
	server { listen 127.0.0.1:%[3]d; root %[1]s; }
}
`, root, compresses, nginxPort)
	if err := errors.Join(os.WriteFile(filepath.Join(root, "file.txt"), []byte(text.String()), 0o644), os.WriteFile(filepath.Join(root, "conf"), []byte(conf), 0o644)); err != nil {
		return "", err
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	if _, _, err := g.run(ctx, program, "-c", filepath.Join(root, "conf")); err != nil {
		return "", fmt.Errorf("nginx (Debian package nginx-light): %w", err)
	}
	url = fmt.Sprintf("http://127.0.0.1:%d/file.txt", nginxPort)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = get(ctx, http.DefaultClient, url); err == nil || time.Now().After(deadline) {
			return url, err
		}
	}
}

// get reads the answer to a request.
func get(ctx context.Context, client *http.Client, url string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(q)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return errors.Join(err, r.Body.Close())
}

// asking sends one to most requests at once every 150 ms, whether the last ones are answered or not, until ctx ends. The numbers are the same each
// time. It returns a function that says how long they took since it was last called, from when they were due.
func asking(ctx context.Context, url string, most int) func() ([]float64, error) {
	const every = 150 * time.Millisecond
	var mu sync.Mutex
	var took []float64
	var failed error
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: time.Minute}
	go func() {
		begin := time.Now()
		rng := rand.New(rand.NewPCG(1, 1))
		for i := 0; ; i++ {
			due := begin.Add(every * time.Duration(i))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
			for range 1 + rng.IntN(most) {
				go func() {
					err := get(ctx, client, url)
					mu.Lock()
					defer mu.Unlock()
					if took = append(took, time.Since(due).Seconds()); err != nil && ctx.Err() == nil {
						failed = err
					}
				}()
			}
		}
	}()
	return func() ([]float64, error) {
		mu.Lock()
		defer mu.Unlock()
		all := took
		took = nil
		return all, failed
	}
}
