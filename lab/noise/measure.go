//go:build linux

package noise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/host"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
	"tare/stats"
)

// Report says which settings the host allows Tare to change, and how much each reduces the noise here.
type Report struct {
	Pairs    int       `json:"pairs"`     // pairs of runs of the command, with each setting and with none
	CommandS float64   `json:"command_s"` // median seconds of a run without changes
	Rounds   int       `json:"rounds"`    // number of rounds for Interval
	Interval float64   `json:"interval"`  // half-width of the A/A interval after Rounds, as a share, without changes
	Others   float64   `json:"others"`    // share of the host's CPU time that other programs and the machine below it used
	Busy     bool      `json:"busy"`      // whether this share is at least a twentieth
	Level    float64   `json:"level"`     // confidence level of the intervals of the effects, corrected for their number
	Settings []Setting `json:"settings"`
	All      *Effect   `json:"all,omitempty"` // all settings of a quiet run together
}

// Setting is a setting, with its effect where it could be measured.
type Setting struct {
	Found
	Effect *Effect `json:"effect,omitempty"`
}

// Effect is the mean ratio of the difference between the two runs of a pair with the setting quiet to that without, with its
// interval. The A/A interval's width changes by the same factor.
type Effect struct {
	Times float64 `json:"times"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// rounds is the number of rounds for which the report gives the A/A interval.
const rounds = 10

// condition is a state of the host in which the command runs twice.
type condition struct {
	quiet, back func() error
	of          *Setting // nil: no change, or all settings together
	differ      []float64
}

// Measure runs the command on one CPU again and again for about this long: twice without changes, twice with each setting quiet,
// and twice with all settings of a quiet run, in random order. The difference between the two runs of a pair makes the A/A
// interval. It records every value in the journal before it changes it, and restores it after each pair.
func (t Tree) Measure(ctx context.Context, j *journal.Journal, h notebook.Host, command []string, long time.Duration, say func(string)) (r Report, err error) {
	cpus, err := host.ChooseCPUs(h, 1)
	if err != nil {
		return r, err
	}
	done := make(chan struct{})
	go func() { // its thread ends with it, because it and its children are bound to the CPU
		defer close(done)
		runtime.LockOSThread()
		var only unix.CPUSet
		only.Set(cpus[0])
		if err = unix.SchedSetaffinity(0, &only); err == nil {
			r, err = t.measure(ctx, j, h, cpus[0], command, long, say)
		}
	}()
	<-done
	return r, err
}

func (t Tree) measure(ctx context.Context, j *journal.Journal, h notebook.Host, cpu int, command []string, long time.Duration, say func(string)) (r Report, err error) {
	for _, f := range t.Find() {
		r.Settings = append(r.Settings, Setting{Found: f})
	}
	changes := journal.NewChanges(j, t.Undo())
	defer func() { err = errors.Join(err, changes.Undo(context.WithoutCancel(ctx))) }()
	nothing := func() error { return nil }
	all := []*condition{{quiet: nothing, back: nothing}}
	var together []notebook.Setting
	for i := range r.Settings {
		s := &r.Settings[i]
		c := &condition{of: s}
		switch {
		case s.Name == SMT:
			c.quiet, c.back = t.siblings(ctx, j, h, cpu, s)
		case s.own:
			for k := range s.Files { // the setting belongs to this thread, and ends with it
				s.Files[k].File = filepath.Join(string(t), fmt.Sprintf("proc/%d/timerslack_ns", unix.Gettid()))
			}
		case s.Why == "":
			if err := announce(changes, []Found{s.Found}); err != nil {
				return r, err
			}
		}
		if s.Name != SMT && s.Why == "" {
			refused := s.quieten()
			if refused != nil {
				s.Refused = append(s.Refused, refused.Error())
			}
			if len(s.Files) == 0 {
				s.Why = "the kernel refuses it: " + refused.Error()
			}
			c.quiet, c.back = flip(s.Files)
			if err := c.back(); err != nil {
				return r, err
			}
		}
		if s.Why == "" {
			all = append(all, c)
			if s.Never == "" {
				together = append(together, s.Files...)
			}
		}
	}
	if len(together) > 0 {
		c := &condition{}
		c.quiet, c.back = flip(together)
		all = append(all, c)
	}
	others := othersSince()
	var took []float64
	end, told := time.Now().Add(long), time.Time{}
	for ; time.Now().Before(end) || r.Pairs < rounds; r.Pairs++ {
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			say(fmt.Sprintf("measuring %d settings, about %v left", len(all)-1, max(time.Until(end), 0).Round(time.Second)))
		}
		for _, i := range rand.Perm(len(all)) {
			a, b, err := all[i].pair(ctx, command)
			if err != nil {
				return r, err
			}
			all[i].differ = append(all[i].differ, math.Log(a/b))
			if i == 0 {
				took = append(took, a, b)
			}
		}
	}
	r.conclude(all, took, len(together) > 0)
	r.Others = others()
	r.Busy = r.Others >= busy
	return r, nil
}

// busy is the share of the host's CPU time from which other programs make a host busy. Results call a round disturbed at the same
// share.
const busy = 0.05

// othersSince returns a function that returns the share of the host's CPU time since then that others than this program and its
// children used; 0 where that is unknown.
func othersSince() func() float64 {
	read := func() (c proc.CPUTime, ours time.Duration, err error) {
		for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			var u unix.Rusage
			err = errors.Join(err, unix.Getrusage(who, &u))
			ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		c, failed := proc.Host.CPUTime()
		return c, ours, errors.Join(err, failed)
	}
	before, had, err := read()
	return func() float64 {
		after, has, failed := read()
		of := after.All - before.All
		if err != nil || failed != nil || of <= 0 {
			return 0
		}
		others := max(after.Busy-before.Busy-(has-had), 0) + after.Stolen - before.Stolen
		return max(others.Seconds()/of.Seconds(), 0)
	}
}

// conclude computes the effects of the conditions, compared with the first one, without changes.
func (r *Report) conclude(all []*condition, took []float64, together bool) {
	sure := stats.Sure(0).Share(max(len(all)-1, 1))
	r.CommandS, r.Rounds, r.Level = stats.Median(took), rounds, 1-sure.Alpha
	r.Interval = stats.Width(all[0].differ, rounds, stats.Sure(0))
	for i, c := range all[1:] {
		q := stats.Change(sizes(c.differ), sizes(all[0].differ), sure)
		if !q.HasInterval() {
			continue
		}
		e := &Effect{q.Value, q.Low, q.High}
		if together && i == len(all)-2 {
			r.All = e
		} else {
			c.of.Effect = e
		}
	}
}

// sizes are the distances of the values from their median. A first run of each pair that is always slower is not noise (Brown and
// Forsythe, "Robust tests for the equality of variances", 1974).
func sizes(values []float64) (all []float64) {
	m := stats.Median(values)
	for _, v := range values {
		all = append(all, math.Abs(v-m))
	}
	return all
}

// flip returns the functions that set files to their quiet values, and that restore them.
func flip(files []notebook.Setting) (quiet, back func() error) {
	to := func(value func(notebook.Setting) string) func() error {
		return func() (err error) {
			for _, s := range files {
				err = errors.Join(err, proc.Set(s.File, value(s)))
			}
			return err
		}
	}
	return to(func(s notebook.Setting) string { return s.To }), to(func(s notebook.Setting) string { return s.From })
}

// siblings takes the other threads of the CPU's core offline: only these matter to a command on that CPU.
func (t Tree) siblings(ctx context.Context, j *journal.Journal, h notebook.Host, cpu int, s *Setting) (quiet, back func() error) {
	var others []int
	core := slices.IndexFunc(h.CPUs, func(c notebook.CPU) bool { return c.ID == cpu })
	for _, c := range h.CPUs {
		if c.Core == h.CPUs[core].Core && c.ID != cpu {
			others = append(others, c.ID)
		}
	}
	s.Files = nil // they describe the whole host
	if len(others) == 0 {
		s.Why = fmt.Sprintf("CPU %d shares its core with no other", cpu)
		if text, err := (proc.Tree{FS: os.DirFS(string(t))}).Read("/sys/devices/system/cpu/smt/control"); err == nil {
			s.Why += fmt.Sprintf(" (/sys/devices/system/cpu/smt/control says %q)", text)
		}
		return nil, nil
	}
	s.Why = ""
	restore := func(context.Context) error { return nil }
	quiet = func() (err error) {
		var r func(context.Context) error
		if r, err = host.TakeOffline(ctx, j, others); r != nil {
			restore = r
		}
		return err
	}
	return quiet, func() error { return restore(context.WithoutCancel(ctx)) }
}

// pair runs the command twice under the condition, and returns the seconds of each run.
func (c *condition) pair(ctx context.Context, command []string) (a, b float64, err error) {
	err = c.quiet()
	if err == nil {
		if a, err = run(ctx, command); err == nil {
			b, err = run(ctx, command)
		}
	}
	return a, b, errors.Join(err, c.back())
}

// runTimeout bounds one run of a command of some hundredths of a second.
const runTimeout = 30 * time.Second

func run(ctx context.Context, command []string) (seconds float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off"}
	began := time.Now()
	err = cmd.Run()
	seconds = time.Since(began).Seconds()
	if e := ctx.Err(); e != nil {
		err = e
	}
	if err != nil {
		err = fmt.Errorf("noise: the measured command, %s: %w", strings.Join(command, " "), err)
	}
	return seconds, err
}

// Work is a short command: steps that each need the one before, and memory that is touched for the first time and then read in
// a different order. It takes some hundredths of a second.
func Work() error {
	const size, page = 8 << 20, 4 << 10
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	x := uint64(42)
	for range 4_000_000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	for i := 0; i < size; i += page {
		memory[i] = byte(x)
	}
	for range 100_000 {
		x = x*6364136223846793005 + 1442695040888963407 + uint64(memory[x%size])
	}
	if x == 0 { // so that the compiler keeps the steps
		return errors.New("the sum is 0, which these steps cannot give")
	}
	return unix.Munmap(memory)
}

// Describe prints the report.
func (r Report) Describe(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A command of %.0f ms on bare metal against itself, %d pairs as the host is: its A/A interval after %d rounds would be ±%.2g %%.\n",
		1000*r.CommandS, r.Pairs, r.Rounds, 100*r.Interval)
	if r.Busy {
		fmt.Fprintf(&b, "The host was busy: other programs, and the machine below this one, used %.0f %% of its CPU time.\n", 100*r.Others)
	}
	fmt.Fprintf(&b, "Effect of each setting on the width of the A/A interval (ratio; below 1 is better; %.3g %% intervals):\n\n", 100*r.Level)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range r.Settings {
		change := s.change()
		switch {
		case s.Effect != nil:
			fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, change, s.Effect)
		case s.Why != "":
			fmt.Fprintf(t, "%s\t-\t%s\n", s.Name, s.Why)
		default:
			fmt.Fprintf(t, "%s\t%s\tunknown: the runs differ too little for an interval, or a few of them by far too much\n", s.Name, change)
		}
	}
	if r.All != nil {
		fmt.Fprintf(t, "all that --tune-host sets\t\t%s\n", r.All)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range r.Settings {
		if s.Never != "" && s.Why == "" {
			fmt.Fprintf(&b, "\n--tune-host leaves alone: %s: %s.", s.Name, s.Never)
		}
		if s.vms != "" && s.Why == "" {
			fmt.Fprintf(&b, "\n--tune-host leaves alone where a study has VMs: %s: %s.", s.Name, s.vms)
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// change describes the change: "2 → 0".
func (s Setting) change() string {
	if len(s.Files) == 0 {
		return "offline" // the files are CPUs
	}
	text := strings.TrimPrefix(notebook.Said(s.Files)[0], s.Name+": ")
	if n := len(s.Refused); n > 0 {
		text += fmt.Sprintf("; %d refused", n)
	}
	return text
}

// String describes the effect.
func (e *Effect) String() string {
	words := "no effect seen"
	switch {
	case e.High < 1:
		words = "narrower"
	case e.Low > 1:
		words = "wider"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)  %s", e.Times, e.Low, e.High, words)
}
