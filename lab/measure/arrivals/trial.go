//go:build linux

package arrivals

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/arrivals"
)

// here is where a service listens. It is asked from within its own network namespace, so that the engine's network is part of the
// start and not of the question.
var here = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Limits beyond which the client may have measured itself: its lateness, as a share of what it measures, and its use of a core.
const (
	clientShare = 0.05
	clientCore  = 80 // percent
)

// clientLimits warns of a client that may have measured itself.
func clientLimits(f map[string]float64) (warnings []*notebook.Message) {
	if late, of := f[record.ClientLate.Name], f[record.StartP50.Name]; late > max(clientShare*of, 0.001) {
		warnings = append(warnings, notebook.Say("client-late", "late", late, "start", of))
	}
	if cpu := f[record.ClientCPU.Name]; cpu > clientCore {
		warnings = append(warnings, notebook.Say("client-busy", "cpu", cpu/100))
	}
	return warnings
}

// ownTime is the CPU time of Tare itself, without the programs that it starts.
func ownTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails only for wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bringUp is a trial under way.
type bringUp struct {
	*subject
	guests []started
	starts []record.Request
	begin  time.Time
	stop   context.CancelCauseFunc // stops further requests

	mu   sync.Mutex // guards room
	room *hostRoom

	provisioning sync.Mutex // crowd.Host makes one guest after the other
}

// started is a container of a bringUp.
type started struct {
	ahead   measure.Ahead
	guest   crowd.Guest
	work    *crowd.Service
	refused bool // the host had no room for its start
}

// several calls do for each container, for some at the same time, and returns all errors.
func (u *bringUp) several(do func(i int) error) error {
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

// create makes all containers; cause says why one of them cannot be made.
func (u *bringUp) create(ctx context.Context) (cause *notebook.Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first sync.Once // one message is enough, and the others may only say that this one ended them
	_ = u.several(func(i int) error {
		if ctx.Err() != nil {
			return nil // another container could not be made
		}
		cctx, done := context.WithTimeout(ctx, crowd.ProvisionTimeout)
		defer done()
		want := crowd.Want{Treatment: u.Treatment, ID: crowd.NewID(), Work: u.Ready}
		var err error
		if g := &u.guests[i]; ofSnapshot(u.Treatment) {
			err = u.save(cctx, g, want)
		} else {
			g.ahead, err = u.Create(cctx, want)
		}
		if err != nil {
			first.Do(func() {
				cause = notebook.Say("container-not-made", "container", i+1, "of", len(u.guests), "cause", err)
			})
			cancel()
		}
		return nil
	})
	return cause
}

// remove ends and removes all containers.
func (u *bringUp) remove(ctx context.Context) error {
	return u.several(func(i int) error {
		g := &u.guests[i]
		if g.work != nil {
			g.work.Stop()
			<-g.work.Alive().Done() // the client limits this wait
		}
		if g.ahead == nil {
			return nil
		}
		return crowd.Destroy(ctx, g.ahead)
	})
}

// inForce says which container is not held to its limits.
func (u *bringUp) inForce() *notebook.Message {
	for i, g := range u.guests {
		if g.guest == nil {
			continue
		}
		if err := g.ahead.InForce(); err != nil {
			return notebook.Say("of-container", "container", i+1, "cause", err)
		}
	}
	return nil
}

// one returns the function that makes a request.
func (u *bringUp) one(ctx context.Context) func(i int, intended time.Time) {
	limit := time.Duration(u.TimeoutS * float64(time.Second))
	return func(i int, intended time.Time) {
		s := &u.starts[i]
		s.AtS, s.LateS = intended.Sub(u.begin).Seconds(), time.Since(intended).Seconds()
		if why := u.admit(); why != nil {
			u.stop(why)
			u.guests[i].refused = true
			return
		}
		ctx, cancel := context.WithDeadline(ctx, intended.Add(limit))
		defer cancel()
		begun := make(chan *notebook.Message, 1)
		go func() { begun <- u.follow(ctx, i, intended) }()
		err := u.guests[i].ahead.Start(ctx)
		s.CallS = time.Since(intended).Seconds()
		if err != nil {
			cancel() // nothing needs to wait for its hello any more
		}
		why := <-begun
		switch {
		case err != nil:
			why = notebook.Say("starting", "cause", err)
		case why == nil:
			return
		}
		if ctx.Err() == context.DeadlineExceeded {
			why = notebook.Say("no-answer", "within", limit, "cause", why)
			u.stop(&notebook.Error{Says: notebook.Say("engine-silent", "cause", why)})
		}
		s.Failure = why
	}
}

// follow waits for a container's first process and for the first useful answer of its application; cause says why one of them did
// not come.
func (u *bringUp) follow(ctx context.Context, i int, intended time.Time) (cause *notebook.Message) {
	g, s := &u.guests[i], &u.starts[i]
	guest, err := g.ahead.Meet(ctx)
	if err != nil {
		return notebook.ErrorMessage(err)
	}
	g.guest = guest
	s.HelloS = time.Since(intended).Seconds()
	w := u.Ready.Workload
	if w.Service == nil {
		order := w.Order(w.Command, u.Ready.Params, u.Ready.Image, workload.Seat{Instance: u.Treatment.Instance})
		order.Timeout = time.Duration(u.TimeoutS * float64(time.Second))
		res, _, err := guest.Ruler().Run(ctx, order)
		s.AnswerS = time.Since(intended).Seconds()
		if err != nil {
			return notebook.ErrorMessage(err)
		}
		return workload.Failure(res)
	}
	seat := workload.Seat{Instance: u.Treatment.Instance, Address: here}
	g.work = crowd.Begin(ctx, guest, u.Treatment, u.Ready, w.Order(w.Service.Command, u.Ready.Params, u.Ready.Image, seat))
	asking, enough := context.WithCancel(ctx)
	defer enough()
	defer context.AfterFunc(g.work.Alive(), enough)()
	err = u.world.ask(asking, guest, netip.AddrPortFrom(here, uint16(w.Service.Port)), *w.Load.First)
	s.AnswerS = time.Since(intended).Seconds()
	switch {
	case g.work.Over():
		return notebook.Say("service-ended", "cause", g.work.How())
	case err != nil:
		return notebook.ErrorMessage(err)
	}
	return nil
}

// admit says why the host should not get one more container.
func (u *bringUp) admit() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.room.admit()
}
