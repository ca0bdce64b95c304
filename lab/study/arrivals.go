package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/pace"
	"tare/lab/proc"
	"tare/lab/workload"
	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
)

// Arrivals is how a study file says that containers are started under load: they are made ahead and asked to start at a rate, in an open loop (paper
// "characterization", section 5.1).
type Arrivals struct {
	Rates   []int  `yaml:"rates"`             // requests a second; each makes a treatment
	For     string `yaml:"for,omitempty"`     // how long requests arrive; default 10s
	Least   int    `yaml:"least,omitempty"`   // requests, if a rate makes fewer in that time; default 10
	Most    int    `yaml:"most,omitempty"`    // requests, if a rate makes more; default 100
	Timeout string `yaml:"timeout,omitempty"` // after which an engine, or an application, no longer answers; default 30s
	Profile bool   `yaml:"profile,omitempty"` // samples say where the time goes

	Published []arrivalskind.Published `yaml:"published,omitempty"`
}

const (
	mostStarts   = 1000
	mostPerS     = 8000             // more than the client can make with one core (scripts/bench ceiling)
	together     = 4                // containers that are made, or removed, at the same time
	leadIn       = time.Second / 10 // before the first request
	leastGuest   = 24 * notebook.MiB
	leastThreads = 32 // of a container with what its engine holds it by
	keptThreads  = 512
)

// parse reads it; a nil one is none.
func (a *Arrivals) parse() (*arrivalskind.Config, error) {
	if a == nil {
		return nil, nil
	}
	out := &arrivalskind.Config{Least: cmp.Or(a.Least, 10), Most: cmp.Or(a.Most, 100), Profile: a.Profile, Published: a.Published}
	if len(a.Rates) == 0 {
		return nil, errors.New("rates: is missing: numbers like [1, 2, 4, 8] were expected")
	}
	for i, r := range a.Rates {
		if r < 1 || r > mostPerS || i > 0 && r <= a.Rates[i-1] {
			return nil, fmt.Errorf("rates: %v: numbers from 1 to %d, each greater than the one before, were expected", a.Rates, mostPerS)
		}
	}
	if out.Least < 2 || out.Most > mostStarts || out.Least > out.Most {
		return nil, fmt.Errorf("least: %d to %d requests: numbers from 2 to %d, the second not smaller, were expected", out.Least, out.Most, mostStarts)
	}
	for _, f := range []struct {
		name, text string
		to         *float64
	}{{"for", cmp.Or(a.For, "10s"), &out.ForS}, {"timeout", cmp.Or(a.Timeout, "30s"), &out.TimeoutS}} {
		d, err := time.ParseDuration(f.text)
		if err != nil || d < time.Second || d > time.Hour {
			return nil, fmt.Errorf("%s: %q: a time from 1s to 1h was expected", f.name, f.text)
		}
		*f.to = d.Seconds()
	}
	for _, p := range a.Published {
		if p.Rate < 1 || !(p.Mean > 0) || !(p.P95 > 0) {
			return nil, fmt.Errorf("published: %+v: {rate: …, mean: …, p95: …}, in seconds, was expected", p)
		}
	}
	return out, nil
}

// each gives a workload's parameters with each of the rates among them, where they are told apart as by any other parameter.
func (a *Arrivals) each(all []map[string]string) (more []map[string]string, err error) {
	if a == nil {
		return all, nil
	}
	for _, params := range all {
		if _, taken := params[notebook.ParamRate]; taken {
			return nil, fmt.Errorf("arrivals: the workload has a parameter %q of its own: one without it was expected", notebook.ParamRate)
		}
		for _, r := range a.Rates {
			n := maps.Clone(params)
			n[notebook.ParamRate] = strconv.Itoa(r)
			more = append(more, n)
		}
	}
	return more, nil
}

// Ahead is a guest that is made and not started; engine.Ahead says more about each.
type Ahead interface {
	Start(ctx context.Context) error
	Meet(ctx context.Context) (Guest, error)
	InForce() error
	Destroy(ctx context.Context) error
}

// Profiling is the sampling of what all of the host's CPUs do.
type Profiling interface {
	// Stop ends it and says what was seen.
	Stop() (*arrivalskind.Profile, error)
}

// here is where a service of a study with arrivals listens: it is asked from within its own network namespace, so that an engine's network is
// a part of its start, and not of the question.
var here = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// provision makes the first guest of a treatment.
func (r *Run) provision(ctx context.Context, t notebook.Treatment, id string, ready *workload.Ready) (Guest, error) {
	if r.Plan.Study.Kind != arrivalskind.Name {
		return r.Lab.Provision(ctx, t, id, ready)
	}
	// It is started as the others will be: what the host keeps of a first start they find, and its limits are looked at before they are made.
	a, err := r.Lab.Create(ctx, t, id, ready)
	if err != nil {
		return nil, err
	}
	g, err := metAtOnce(ctx, a)
	if err != nil {
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
		defer cancel()
		return nil, errors.Join(err, a.Destroy(dctx))
	}
	return g, nil
}

func metAtOnce(ctx context.Context, a Ahead) (Guest, error) {
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	g, err := a.Meet(ctx)
	if err == nil {
		err = a.InForce()
	}
	return g, err
}

// bringUp makes containers ahead and starts them at the treatment's rate. The error is of a container that cannot be removed.
func (r *Run) bringUp(ctx context.Context, ready *workload.Ready, t notebook.Treatment) (tr notebook.Trial, err error) {
	a := *arrivalskind.Of(r.Plan.Study)
	tr.Start = time.Now().UTC()
	tr.Command = ready.Workload.Command
	rate, err := strconv.Atoi(t.Params[notebook.ParamRate])
	if err != nil {
		return tr, err // the plan made it
	}
	b := &arrivalskind.Bringup{Offered: float64(rate), Planned: a.Starts(rate)}
	seen := arrivalskind.Seen{Bringup: b}
	defer func() { tr.Seen = seen }()
	u := &upbringing{Run: r, Config: a, ready: ready, t: t, guests: make([]begunGuest, b.Planned)}
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		err = errors.Join(err, u.remove(ctx))
	}()
	if tr.Failure = u.create(ctx); tr.Failure != "" || ctx.Err() != nil {
		return tr, nil
	}
	b.CreatedS = time.Since(tr.Start).Seconds()
	if u.room, err = newRoom(); err != nil {
		tr.Failure = err.Error()
		return tr, nil
	}
	var profiling Profiling
	if a.Profile {
		if profiling, err = r.Lab.Profile(t); err != nil {
			tr.Warnings, err = append(tr.Warnings, "no profile: "+err.Error()), nil
		}
	}
	before := ownTime()
	u.begin = time.Now().Add(leadIn)
	u.starts = make([]arrivalskind.Request, b.Planned)
	pacing, stop := context.WithCancelCause(ctx)
	u.stop = stop
	n := pace.Issue(pacing, u.begin, b.Planned, time.Second/time.Duration(rate), u.one(ctx))
	b.ClientS, b.OfS = (ownTime() - before).Seconds(), time.Since(u.begin).Seconds()
	if profiling != nil {
		if seen.Profile, err = profiling.Stop(); err != nil {
			tr.Warnings, err = append(tr.Warnings, "no profile: "+err.Error()), nil
		}
	}
	for _, s := range u.starts[:n] {
		if s.Failure != notMade {
			b.Starts = append(b.Starts, s)
		}
	}
	if n = len(b.Starts); n < b.Planned && ctx.Err() == nil {
		b.Stopped = context.Cause(pacing).Error()
		tr.Warnings = append(tr.Warnings, fmt.Sprintf("%d of %d requests were made: %s", n, b.Planned, b.Stopped))
	}
	stop(nil)
	if ctx.Err() != nil {
		return tr, nil // its caller sees that
	}
	tr.Figures = b.Figures()
	tr.Value = tr.Figures[arrivalskind.StartMean.Name]
	maps.Copy(tr.Figures, seen.Profile.Figures())
	failed, first := 0, ""
	for i, s := range b.Starts {
		if s.Failure != "" {
			if failed++; first == "" {
				first = fmt.Sprintf("container %d: %s", i+1, s.Failure)
			}
		}
	}
	switch {
	case failed > 0: // the times of the others alone would be those of a better engine
		tr.Failure = fmt.Sprintf("%d of %d starts failed at %d a second: %s", failed, n, rate, first)
	default:
		tr.Failure = u.inForce()
	}
	tr.Warnings = append(tr.Warnings, clientLimits(tr.Figures)...)
	return tr, nil
}

// notMade marks a request for which the host had no room.
const notMade = "not made"

// The client may be this late, of a share of what it measures, and use this much of a core, before it may be what is measured.
const (
	clientShare = 0.05
	clientCore  = 80 // percent
)

// clientLimits warns of a client that may have measured itself.
func clientLimits(f map[string]float64) (warnings []string) {
	if late, of := f[arrivalskind.ClientLate.Name], f[arrivalskind.StartP50.Name]; late > max(clientShare*of, 0.001) {
		warnings = append(warnings, fmt.Sprintf("one in a hundred requests was made %.3g ms late or more, where half the starts took %.3g ms: the host had no CPU for the client", 1000*late, 1000*of))
	}
	if cpu := f[arrivalskind.ClientCPU.Name]; cpu > clientCore {
		warnings = append(warnings, fmt.Sprintf("the client used %.0f %% of a core: it may have measured itself", cpu))
	}
	return warnings
}

// ownTime is the CPU time of Tare itself: of none of the programs that it starts.
func ownTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails for wrong arguments alone
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// upbringing is a trial of bringUp under way.
type upbringing struct {
	*Run
	arrivalskind.Config
	ready  *workload.Ready
	t      notebook.Treatment
	guests []begunGuest
	starts []arrivalskind.Request
	begin  time.Time
	stop   context.CancelCauseFunc // no further requests are made

	mu   sync.Mutex // of room
	room *hostRoom
}

type begunGuest struct {
	ahead Ahead
	guest Guest
	work  *service
}

// several does something for each container, some at the same time, and gives the errors.
func (u *upbringing) several(do func(i int) error) error {
	errs := make([]error, len(u.guests))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(together, 2*runtime.NumCPU()) {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range u.guests {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}

// create makes all containers; it says why one cannot be made.
func (u *upbringing) create(ctx context.Context) (cause string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := u.several(func(i int) (err error) {
		if ctx.Err() != nil {
			return nil // another could not be made
		}
		cctx, done := context.WithTimeout(ctx, provisionTimeout)
		defer done()
		a, err := u.Lab.Create(cctx, u.t, anID(), u.ready)
		if err != nil {
			cancel()
			return fmt.Errorf("container %d of %d cannot be made: %w", i+1, len(u.guests), err)
		}
		u.guests[i].ahead = a
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// remove ends and removes all containers.
func (u *upbringing) remove(ctx context.Context) error {
	return u.several(func(i int) error {
		g := &u.guests[i]
		if g.work != nil {
			g.work.stop()
			<-g.work.alive.Done() // the client bounds it
		}
		if g.ahead == nil {
			return nil
		}
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
		defer cancel()
		return g.ahead.Destroy(dctx)
	})
}

// inForce says which container is not held to its limits.
func (u *upbringing) inForce() string {
	for i, g := range u.guests {
		if g.guest == nil {
			continue
		}
		if err := g.ahead.InForce(); err != nil {
			return fmt.Sprintf("container %d: %v", i+1, err)
		}
	}
	return ""
}

// one gives what makes a request.
func (u *upbringing) one(ctx context.Context) func(i int, intended time.Time) {
	limit := time.Duration(u.TimeoutS * float64(time.Second))
	return func(i int, intended time.Time) {
		s := &u.starts[i]
		s.AtS, s.LateS = intended.Sub(u.begin).Seconds(), time.Since(intended).Seconds()
		if why := u.admit(); why != nil {
			u.stop(why)
			s.Failure = notMade
			return
		}
		ctx, cancel := context.WithDeadline(ctx, intended.Add(limit))
		defer cancel()
		begun := make(chan string, 1)
		go func() { begun <- u.follow(ctx, i, intended) }()
		err := u.guests[i].ahead.Start(ctx)
		s.CallS = time.Since(intended).Seconds()
		if err != nil {
			cancel() // who waits for its hello need not
		}
		why := <-begun
		switch {
		case err != nil:
			why = "starting it: " + err.Error()
		case why == "":
			return
		}
		if ctx.Err() == context.DeadlineExceeded {
			why = fmt.Sprintf("no answer in %v: %s", limit, why)
			u.stop(errors.New("the engine, or an application, no longer answered: " + why))
		}
		s.Failure = why
	}
}

// follow waits for a container's first process and for its application's first useful answer; it says why there is none.
func (u *upbringing) follow(ctx context.Context, i int, intended time.Time) (cause string) {
	g, s := &u.guests[i], &u.starts[i]
	guest, err := g.ahead.Meet(ctx)
	if err != nil {
		return err.Error()
	}
	g.guest = guest
	s.HelloS = time.Since(intended).Seconds()
	w := u.ready.Workload
	seat := workload.Seat{Instance: u.t.Instance}
	if w.Service == nil {
		order := w.Order(w.Command, u.ready.Params, u.ready.Image, seat)
		order.Timeout = time.Duration(u.TimeoutS * float64(time.Second))
		res, _, err := guest.Ruler().Run(ctx, order)
		s.AnswerS = time.Since(intended).Seconds()
		if err != nil {
			return err.Error()
		}
		return workload.Failure(res)
	}
	seat.Address = here
	g.work = begin(ctx, guest, u.t, u.ready, w.Order(w.Service.Command, u.ready.Params, u.ready.Image, seat))
	asking, enough := context.WithCancel(ctx)
	defer enough()
	defer context.AfterFunc(g.work.alive, enough)()
	err = u.Lab.Ask(asking, guest, netip.AddrPortFrom(here, uint16(w.Service.Port)), *w.Load.First)
	s.AnswerS = time.Since(intended).Seconds()
	switch {
	case g.work.over():
		return "its service ended: " + g.work.how()
	case err != nil:
		return err.Error()
	}
	return ""
}

// admit says why the host should not get one more container.
func (u *upbringing) admit() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.room.admit()
}

// hostRoom foresees when the host runs short, by what the containers that were started have taken each.
type hostRoom struct {
	memory, threads int64 // left when there was none
	keep            int64 // bytes
	n               int64 // that were admitted
}

func newRoom() (*hostRoom, error) {
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return nil, err
	}
	h := &hostRoom{keep: int64(reserve * float64(all))}
	h.memory, h.threads, err = unused()
	return h, err
}

// unused is how much memory, and how many threads, the host has left.
func unused() (memory, threads int64, err error) {
	if memory, err = proc.Host.Memory("MemAvailable"); err != nil {
		return 0, 0, err
	}
	now, most, err := proc.Host.Tasks()
	return memory, int64(most - now), err
}

// admit counts one more, or says why there is no room for it. Those that were admitted of late have not taken all that they will: of each as much is
// counted as the greater of what one has taken so far, and what the least takes.
func (h *hostRoom) admit() error {
	memory, threads, err := unused()
	if err != nil {
		return err
	}
	each := max(leastGuest, (h.memory-memory)/max(h.n, 1))
	tasks := max(leastThreads, (h.threads-threads)/max(h.n, 1))
	const pending = 8 // that may still be on their way
	switch {
	case memory-min(h.n+1, pending)*each < h.keep:
		return fmt.Errorf("the host has %d MiB of memory left, of which %d are kept, and a container takes about %d: no more than %d are started", memory/notebook.MiB, h.keep/notebook.MiB, each/notebook.MiB, h.n)
	case threads-min(h.n+1, pending)*tasks < keptThreads:
		return fmt.Errorf("the host has room for %d more processes and threads, and a container takes about %d: no more than %d are started", threads, tasks, h.n)
	}
	h.n++
	return nil
}
