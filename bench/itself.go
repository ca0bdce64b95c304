//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/desk/data"
	"tare/lab/host"
	"tare/notebook"
	"tare/stats"
)

// narrowly is the precision to which the ratio of a command to itself must be known.
const narrowly = 0.01

// itselfLimits are the limits: Tare knows the ratio in at most this share of the time of hyperfine in its own order, and of hyperfine when a
// script alternates its commands.
var itselfLimits = [waysOfTrying]float64{inOrder: 0.20, inTurn: 1.00}

// The time limits of that comparison and of one study in it. Where they are too short, the rest is extrapolated, as it is for hyperfine.
const (
	itselfBudget = 6 * time.Minute
	itselfMost   = 20 * time.Second
)

// A try compares a command with itself once.
type try struct {
	took  float64 // seconds, in total
	ratio stats.Quotient
}

// half is half the interval's width, as a share of the ratio.
func (t try) half() float64 {
	return max(t.ratio.High-t.ratio.Value, t.ratio.Value-t.ratio.Low) / t.ratio.Value
}

// missed is the factor by which the interval must be widened to contain 1.
func (t try) missed() float64 { return math.Abs(t.ratio.Value-1) / t.ratio.Value / t.half() }

// needs is the time to a narrow enough interval if all are widened by this factor. The number of runs grows with the square of the narrowing.
// An interval that is narrow enough already needed its own time: hyperfine's least is ten runs and three seconds of each command.
func (t try) needs(wider float64) float64 {
	n := wider * t.half() / narrowly
	return t.took * max(1, n*n)
}

// widened is the factor by which intervals must be widened to miss in one try of twenty.
func widened(tries []try) float64 {
	var all []float64
	for _, t := range tries {
		all = append(all, t.missed())
	}
	slices.Sort(all)
	return all[int(math.Ceil((1-stats.Alpha)*float64(len(all))))-1]
}

// The ways of comparing. Tare's intervals are not widened.
const (
	byTare = iota
	inOrder
	inTurn
	waysOfTrying
)

// tried holds the tries of each way in one round.
type tried [waysOfTrying][]try

// typical is the median need of each way, and the factor by which its intervals were widened.
func typical(rounds []tried) (needs, wider [waysOfTrying]float64) {
	for way := range needs {
		var all []try
		for _, r := range rounds {
			all = append(all, r[way]...)
		}
		wider[way] = 1
		if way != byTare {
			wider[way] = widened(all)
		}
		var each []float64
		for _, t := range all {
			each = append(each, t.needs(wider[way]))
		}
		needs[way] = stats.Median(each)
	}
	return needs, wider
}

// resampled is the number of bootstrap samples of the rounds.
const resampled = 4000

// bootstrapped is a figure of the rounds with its 95 % bootstrap interval.
func bootstrapped(rounds []tried, figure func(needs, wider [waysOfTrying]float64) float64) stats.Quotient {
	rng := rand.New(rand.NewPCG(3, uint64(len(rounds))))
	var all []float64
	for range resampled {
		var drawn []tried
		for range rounds {
			drawn = append(drawn, rounds[rng.IntN(len(rounds))])
		}
		all = append(all, figure(typical(drawn)))
	}
	slices.Sort(all)
	end := int(stats.Alpha / 2 * resampled)
	return stats.Quotient{Value: figure(typical(rounds)), Low: all[end], High: all[resampled-1-end], N: len(rounds)}
}

// itself measures how soon Tare and hyperfine know that a command takes as long as itself. hyperfine's intervals are Welch's from its means and
// deviations, widened until they miss as rarely as Tare's claim to.
func itself(ctx context.Context, dir string) error {
	s, err := newSpinner(ctx, dir, 0.2)
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, "hyperfine", "--version").Output()
	if err != nil {
		return fmt.Errorf("hyperfine --version: %w", err)
	}
	fmt.Printf("\nA command of %s and itself, on one core: until their ratio is known to ± %g %% (%s)\n", duration(s.took), narrowly*100, strings.TrimSpace(string(version)))
	var rounds []tried
	var where spent // Tare's time
	ways := [waysOfTrying]func() ([]try, error){
		byTare: func() ([]try, error) {
			sum, took, err := s.study(ctx, fmt.Sprintf("±%g%%", narrowly*100), itselfMost)
			if err != nil {
				return nil, err
			}
			where = where.plus(s.spent)
			a := sum.AA[0]
			return []try{{took, stats.Quotient{Value: a.Ratio, Low: a.Low, High: a.High}}}, nil
		},
		inOrder: func() ([]try, error) { // each command with the one before
			const commands = 4
			began := time.Now()
			took, err := s.hyperfine(ctx, 0, commands)
			each := time.Since(began).Seconds() / commands
			if err != nil {
				return nil, err
			}
			s.runs = len(took[0])
			var tries []try
			for i := range commands - 1 {
				tries = append(tries, try{2 * each, stats.Change(took[i+1], took[i], stats.Sure(0))})
			}
			return tries, nil
		},
		inTurn: func() ([]try, error) {
			var took [2][]float64
			began := time.Now()
			for i := range 2 * s.runs {
				one, err := s.hyperfine(ctx, 1, 1)
				if err != nil {
					return nil, err
				}
				took[i%2] = append(took[i%2], one[0][0])
			}
			return []try{{time.Since(began).Seconds(), stats.Change(took[1], took[0], stats.Sure(0))}}, nil
		},
	}
	for began := time.Now(); len(rounds) < 2 || time.Since(began) < itselfBudget; {
		var now tried
		order := rand.New(rand.NewPCG(2, uint64(len(rounds)))).Perm(waysOfTrying)
		if len(rounds) == 0 { // a script runs a command as often as hyperfine does by default
			order = []int{inOrder, inTurn, byTare}
		}
		for _, way := range order {
			if now[way], err = ways[way](); err != nil {
				return err
			}
		}
		rounds = append(rounds, now)
	}
	return report(rounds, where)
}

// report prints the result of each way. The error says that Tare missed a limit.
func report(rounds []tried, where spent) (broken error) {
	needs, widest := typical(rounds)
	for way, name := range []string{"tare run --precision", "hyperfine, in its own order", "hyperfine, in turn by script"} {
		n, misses := 0, 0
		for _, r := range rounds {
			for _, t := range r[way] {
				n++
				if t.missed() > 1 {
					misses++
				}
			}
		}
		line := fmt.Sprintf("  %-30s %8s   misses in %d of %d tries", name, duration(needs[way]), misses, n)
		if way == byTare {
			fmt.Printf("%s\n%32s of its time: %s\n", line, "", where)
			continue
		}
		wider := bootstrapped(rounds, func(_, wider [waysOfTrying]float64) float64 { return wider[way] })
		q := bootstrapped(rounds, func(needs, _ [waysOfTrying]float64) float64 { return needs[byTare] / needs[way] })
		line += fmt.Sprintf(", in 5 %% if %.1f (%.1f to %.1f) times as wide\n  %30s          so tare takes %.2f (%.2f to %.2f) of its time",
			wider.Value, wider.Low, wider.High, "", q.Value, q.Low, q.High)
		limit := itselfLimits[way]
		v := verdict(q, limit)
		if v == notMet && way == inOrder && shortest(rounds, widest[inOrder]) {
			v = notDecided + ", hyperfine's shortest run is long enough here"
		}
		if v == notMet {
			broken = errors.Join(broken, fmt.Errorf("%s: %.2f of its time (%.2f to %.2f); must be at most %.2f", name, q.Value, q.Low, q.High, limit))
		}
		fmt.Printf("%s   at most %.2f: %s\n", line, limit, v)
	}
	return broken
}

// shortest reports whether hyperfine's shortest run, ten times and three seconds of each command, knows the ratio well enough in half of the
// tries, with intervals widened by this factor. Then the host's speed changes too slowly for the order to matter.
func shortest(rounds []tried, wider float64) bool {
	n, enough := 0, 0
	for _, r := range rounds {
		for _, t := range r[inOrder] {
			if n++; wider*t.half() <= narrowly {
				enough++
			}
		}
	}
	return 2*enough > n
}

// Studies of bare metal and itself with a short command. They end after alikeMost, finished or not.
const (
	alikeStudies = 200
	alikeMost    = 2 * time.Second
)

// alike counts how often a study calls bare metal different from itself at its end, and how often after any of its rounds.
func alike(ctx context.Context, dir string) error {
	s, err := newSpinner(ctx, dir, 0.03)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d studies of a command of %s and itself, until ± %g %% or for %v\n", alikeStudies, duration(s.took), narrowly*100, alikeMost)
	atEnd, everAt, decidedWrong, precise := 0, 0, 0, 0
	var rounds, halves []float64
	for range alikeStudies {
		sum, _, err := s.study(ctx, fmt.Sprintf("±%g%%", narrowly*100), alikeMost)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(sum.Rows, func(r *data.Row) bool { return r.Treatment.AA })
		b := slices.IndexFunc(sum.Rows, func(r *data.Row) bool { return !r.Treatment.AA })
		x, y, _ := data.Paired(sum.Rows[i], sum.Rows[b])
		d := sum.Folders[0].Study.Design
		sure := stats.Confidence{Alpha: stats.Alpha, Looks: d.Looks(), Precision: d.Precision, Floor: d.Floor}
		at := func(n int) stats.Quotient { return stats.Ratio(x[:n], y[:n], sure) }
		ever, wrong := false, false
		for n := 2; n <= len(x); n++ {
			q := at(n)
			ever = ever || !q.Contains(1)
			wrong = wrong || q.Verdict(stats.Margin) == stats.Slower || q.Verdict(stats.Margin) == stats.Faster
		}
		last := at(len(x))
		for count, is := range map[*int]bool{&atEnd: last.HasInterval() && !last.Contains(1), &everAt: ever, &decidedWrong: wrong, &precise: stats.Precise(last, narrowly)} {
			if is {
				*count++
			}
		}
		rounds, halves = append(rounds, float64(len(x))), append(halves, try{ratio: last}.half())
	}
	slices.Sort(rounds)
	fmt.Printf("  %.0f to %.0f rounds, median %.0f; intervals of ± %.2g %% in the median; %d reached ± %g %%\n",
		rounds[0], rounds[len(rounds)-1], stats.Median(rounds), stats.Median(halves)*100, precise, narrowly*100)
	share := func(n int) float64 { return 100 * float64(n) / alikeStudies }
	fmt.Printf("  called different: %d (%.1f %%) at the end, %d (%.1f %%) after any round; by %g %% at least: %d (%.1f %%) after any round\n",
		atEnd, share(atEnd), everAt, share(everAt), stats.Margin*100, decidedWrong, share(decidedWrong))
	if share(everAt) > stats.Alpha*100 {
		return fmt.Errorf("%d of %d are called different; must be at most %g %%", everAt, alikeStudies, stats.Alpha*100)
	}
	return nil
}

// Each of injectedRuns studies must find a cost of one per cent within injectedMost.
const (
	injectedMost = time.Minute
	injectedRuns = 3
)

// injected looks for a cost of one per cent: a command that has one per cent more to do in a container.
func injected(ctx context.Context, dir string) error {
	s, err := newSpinner(ctx, dir, 0.1)
	if err != nil {
		return err
	}
	folder, err := filepath.Abs("bench/spin")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "injected.yaml")
	text := fmt.Sprintf("name: injected\ntitle: one per cent more in a container\nworkloads: [{name: %q, params: {thousands: %d, inside: %d}}]\n"+
		"platforms: [{platform: bm}, {platform: cn, engines: [docker], provisioning: [pinned]}]\ninstances: [1/1GB]\n"+
		"design: {rounds: {floor: 200, cap: 200}, trials: 8, warmups: 1, timeout: 1m}\n", folder, s.steps/100*100, s.steps/100)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Printf("\nA command of %s with 1 %% more to do in a container, for %.0f s\n", duration(s.took), injectedMost.Seconds())
	missed := 0
	for n := range injectedRuns {
		q, err := injectedOnce(ctx, file, filepath.Join(dir, fmt.Sprint("injected-", n)))
		if err != nil {
			return err
		}
		v := met
		if !(q.Low > 1) {
			v, missed = notMet, missed+1
		}
		fmt.Printf("  %.4f (%.4f to %.4f), %d rounds: %s\n", q.Value, q.Low, q.High, q.N, v)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d runs did not find the cost", missed, injectedRuns)
	}
	return nil
}

// injectedOnce runs the study and returns the container's ratio to bare metal.
func injectedOnce(ctx context.Context, file, out string) (q stats.Quotient, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	if said, err := exec.CommandContext(ctx, "bin/tare", "run", file, "--out", out, "--time-budget", injectedMost.String()).CombinedOutput(); err != nil {
		return q, fmt.Errorf("tare run: %w: %s", err, said)
	}
	sum, err := data.Read([]string{out}, data.Options{})
	if err != nil {
		return q, err
	}
	i := slices.IndexFunc(sum.Rows, func(r *data.Row) bool { return r.Treatment.Platform == notebook.CN })
	if i < 0 {
		return q, errors.New("no container was measured")
	}
	return sum.Rows[i].Quotient(), nil
}

// spinner is a command of a chosen length, and a study of it.
type spinner struct {
	dir, program, cpu string
	steps             int     // in thousands
	took              float64 // seconds, of that many
	runs              int     // of each command by hyperfine
	studies           int     // so far
	spent             spent   // by the latest
}

// newSpinner makes a command that takes this many seconds on the CPU of a bare-metal guest.
func newSpinner(ctx context.Context, dir string, seconds float64) (*spinner, error) {
	s := &spinner{dir: dir, program: filepath.Join(dir, "spin"), steps: 10_000}
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", s.program, "bench/spin/spin.c").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc spin.c: %w: %s", err, said)
	}
	h, err := host.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	cpus, err := host.ChooseCPUs(h, 1)
	if err != nil {
		return nil, err
	}
	s.cpu = strconv.Itoa(cpus[0])
	for range 2 { // the second time nearly the right number of steps
		s.took = math.Inf(1)
		for range 5 {
			began := time.Now()
			if err := exec.CommandContext(ctx, "taskset", "-c", s.cpu, s.program, strconv.Itoa(s.steps)).Run(); err != nil {
				return nil, fmt.Errorf("spin: %w", err)
			}
			s.took = min(s.took, time.Since(began).Seconds())
		}
		s.steps = int(float64(s.steps) * seconds / s.took)
	}
	s.took = seconds
	_, _, err = s.study(ctx, "", itselfMost) // so that its image exists
	return s, err
}

// hyperfine lets hyperfine run the command under this many names, runs times each (0: hyperfine's default), and returns the times of each.
func (s *spinner) hyperfine(ctx context.Context, runs, names int) ([][]float64, error) {
	return hyperfine(ctx, s.cpu, filepath.Join(s.dir, "itself.json"), runs, slices.Repeat([]string{s.program + " " + strconv.Itoa(s.steps)}, names)...)
}

// study runs the command and itself as a study until the precision is reached or the time is over; with "" for one round. It returns the
// study's summary and the seconds that tare took.
func (s *spinner) study(ctx context.Context, until string, most time.Duration) (*data.Summary, float64, error) {
	s.studies++
	file, out := filepath.Join(s.dir, "itself.yaml"), filepath.Join(s.dir, fmt.Sprint("itself-", s.studies))
	folder, err := filepath.Abs("bench/spin")
	if err != nil {
		return nil, 0, err
	}
	// No shipped study has a smaller floor. Intervals hold no matter how often they are checked.
	text := fmt.Sprintf("name: itself\ntitle: a command and itself\nworkloads: [{name: %q, params: {thousands: %d}}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"+
		"design: {rounds: {floor: 3, cap: 200, emulated: 1}, precision: 1%%, trials: 1, warmups: 0, timeout: 1m}\n", folder, s.steps)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, 0, err
	}
	args := []string{"run", file, "--out", out}
	if until == "" {
		args = append(args, "--rounds", "1")
	} else {
		args = append(args, "--precision", until, "--time-budget", most.String())
	}
	began := time.Now()
	if said, err := exec.CommandContext(ctx, "bin/tare", args...).CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("tare %s: %w: %s", strings.Join(args, " "), err, said)
	}
	ended := time.Now()
	took := ended.Sub(began).Seconds()
	if s.spent, err = spentIn(out, began, ended); err != nil {
		return nil, 0, err
	}
	sum, err := data.Read([]string{out}, data.Options{})
	if err == nil && len(sum.AA) != 1 {
		err = fmt.Errorf("%s has %d A/A checks instead of one", out, len(sum.AA))
	}
	return sum, took, errors.Join(err, os.RemoveAll(out))
}
