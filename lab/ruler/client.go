package ruler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Time limits of the host for what the guest does in addition to the work itself. They are generous, for a guest under software
// emulation on a busy host; they only have to end.
const (
	answerGrace = 30 * time.Second // in addition to the order's own time for an answer
	prepareTime = 3 * time.Minute  // to empty the scratch folder, which may hold millions of files
	cancelGrace = 20 * time.Second // for the answer to a cancelled order; after that the guest is given up
	writeGrace  = 10 * time.Second // for the guest to accept a frame
	clockPings  = 9                // the quickest of them gives the guest's time
)

// Stream is what a Client communicates over: a net.Conn, or an *os.File that supports deadlines.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Client is the host's end of the stream to a guest's ruler. It does not trust the guest: whatever arrives, each method ends in
// bounded time, with an error if the guest is at fault (ErrGone, ErrProtocol, ErrSilent). Only one goroutine at a time may use it,
// except that Close may be called at any time, and Frames and Files during Run.
type Client struct {
	s       Stream
	dec     decoder
	hello   Hello
	greeted time.Time
	rtt     time.Duration
	close   func() error
	looking looking

	writing sync.Mutex
	mu      sync.Mutex // guards err
	err     error      // why the client is unusable
}

func newClient(s Stream) *Client {
	return &Client{s: s, dec: decoder{r: s}, close: sync.OnceValue(s.Close), looking: looking{lost: make(chan struct{})}}
}

// Connect waits, until ctx is done, for the hello of the ruler at the other end of s. It owns s from then on, and closes it on
// error.
func Connect(ctx context.Context, s Stream) (*Client, error) {
	c := newClient(s)
	if err := c.connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) connect(ctx context.Context) error {
	err := c.wait(ctx, time.Time{}, func() error {
		if err := c.dec.sync(); err != nil {
			return err
		}
		f, err := c.dec.next()
		if err != nil {
			return err
		}
		if f.kind != kindHello {
			return unexpected(f, "a hello frame")
		}
		c.greeted = time.Now()
		if err := f.decode(&c.hello); err != nil {
			return err
		}
		return c.hello.check()
	})
	if err != nil {
		return fmt.Errorf("waiting for the guest's ruler to say hello: %w", err)
	}
	return c.write(func() error { _, err := c.s.Write(magic); return err })
}

// Hello is the ruler's description of itself and its guest.
func (c *Client) Hello() Hello { return c.hello }

// Began is when the first byte came from the ruler, which sends one before it does anything else.
func (c *Client) Began() time.Time { return c.dec.first }

// Greeted is when the ruler's hello came.
func (c *Client) Greeted() time.Time { return c.greeted }

// RoundTrip is the shortest time of a Ping so far; 0 before the first Ping or Run.
func (c *Client) RoundTrip() time.Duration { return c.rtt }

// Ping measures the time from sending an empty order to its answer, which takes the same way in the ruler as a Run.
func (c *Client) Ping(ctx context.Context) (time.Duration, error) {
	d, _, err := c.ping(ctx)
	return d, err
}

// ping also returns how far the guest's calendar clock is ahead of the host's, if the answer took half of the time.
func (c *Client) ping(ctx context.Context) (d, ahead time.Duration, err error) {
	if err := c.usable(ctx); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := c.send(kindPing, nil); err != nil {
		return 0, 0, err
	}
	f, err := c.answer(ctx, start.Add(answerGrace), kindPong)
	if err != nil {
		return 0, 0, err
	}
	d = time.Since(start)
	var note pongNote
	if err := f.decode(&note); err != nil {
		return 0, 0, c.fail(err)
	}
	if c.rtt == 0 || d < c.rtt {
		c.rtt = d
	}
	return d, time.Unix(0, note.Now).Sub(start.Add(d / 2)), nil
}

// Clock returns how far the guest's calendar clock is ahead of the host's, by the quickest of several pings, and the bound on its
// error: half of the ping's time.
func (c *Client) Clock(ctx context.Context) (ahead, bound time.Duration, err error) {
	for i := range clockPings {
		d, a, err := c.ping(ctx)
		if err != nil {
			return 0, 0, err
		}
		if i == 0 || d/2 < bound {
			ahead, bound = a, d/2
		}
	}
	return ahead, bound, nil
}

// Cost lets the ruler time n empty processes (1 to MaxCost), one straight after the other, as it times work, and returns the times.
// With argv they are processes of that command, given by its path in the guest, which must succeed each time. So the ruler can be
// compared with other instruments on the same program.
func (c *Client) Cost(ctx context.Context, n int, argv ...string) ([]time.Duration, error) {
	if n < 1 || n > MaxCost {
		return nil, fmt.Errorf("ruler's cost of %d processes: must be from 1 to %d", n, MaxCost)
	}
	r, _, err := c.Run(ctx, Order{Argv: argv, Times: n, KeepScratch: true, Timeout: answerGrace + time.Duration(n)*time.Second/2})
	if err != nil {
		return nil, err
	}
	why, what := r.Error, "the empty program"
	if len(argv) > 0 {
		what = argv[0]
	}
	switch {
	case why != "":
	case r.TimedOut:
		why = timedOut
	case r.Exit != 0 || r.Signal != "":
		why = fmt.Sprintf("%s ended with exit code %d, signal %q", what, r.Exit, r.Signal)
	case len(r.Took) != n:
		return nil, c.fail(violation(fmt.Sprint(n), "%d durations", len(r.Took)))
	default:
		return r.Took, nil
	}
	return nil, fmt.Errorf("the ruler cannot measure its own cost: %s", why)
}

// Run lets the ruler run and measure o. The duration is the interval of Result.Elapsed by the host's clock: from sending go until
// the guest says that the process has ended, less the (short) times that the guest needed to start the clock and to report its
// stop. It includes the way there and back, for which RoundTrip is a measure. Its time in this run is unknown, and on a busy host
// it varies by more than a short trial takes.
//
// When ctx ends, Run cancels the order and kills everything that it started. It returns ctx's error, with the output until then in
// the Result. The client remains usable if the guest answers within seconds. An order that the guest could not start is not an
// error: Result.Error says why. An order beyond Order's limits is an error before anything is sent.
func (c *Client) Run(ctx context.Context, o Order) (Result, time.Duration, error) {
	var none Result
	if err := o.check(); err != nil {
		return none, 0, err
	}
	if err := c.usable(ctx); err != nil {
		return none, 0, err
	}
	if c.rtt == 0 { // it is the measure for comparing the two clocks
		if _, err := c.Ping(ctx); err != nil {
			return none, 0, err
		}
	}
	if err := c.send(kindRun, o); err != nil {
		return none, 0, err
	}
	tracing := time.Duration(0) // time that the guest may take for each answer of its tracer
	if len(o.Tracers) > 0 {
		tracing = traceTime
	}
	f, err := c.answer(ctx, time.Now().Add(tracing+prepareTime+answerGrace), kindReady, kindDone)
	if err != nil {
		return none, 0, err
	}
	var host, seen time.Duration
	if f.kind == kindReady {
		// Before the clock, and after it: this call is not in the interval.
		if o.Bounds != nil {
			o.Bounds.Begin()
		}
		start := time.Now()
		c.looking.during(true)
		if err = c.send(kindGo, nil); err == nil {
			f, err = c.answer(ctx, start.Add(o.Timeout+answerGrace), kindEnded, kindDone)
		}
		c.looking.during(false)
		seen = time.Since(start)
		if o.Bounds != nil {
			o.Bounds.End()
		}
		if err != nil {
			var said Result
			if f.kind == kindDone && f.decode(&said) == nil {
				none.Stdout, none.Stderr = said.Stdout, said.Stderr
			}
			return none, 0, err
		}
		if f.kind == kindEnded {
			var note endedNote
			if err := f.decode(&note); err != nil {
				return none, 0, c.fail(err)
			}
			if note.Lead < 0 || note.Late < 0 || note.Lead > 2*seen || note.Late > 2*seen {
				return none, 0, c.fail(violation(fmt.Sprintf("at most the %v that the host saw", seen),
					"a start %v after the word to go and an end %v ago", note.Lead, note.Late))
			}
			host = max(0, seen-note.Lead-note.Late)
			if f, err = c.answer(ctx, time.Now().Add(tracing+sweepTime+drainTime+answerGrace), kindDone); err != nil {
				return none, 0, err
			}
		}
	}
	var r Result
	if err := f.decode(&r); err != nil {
		return none, 0, c.fail(err)
	}
	if err := r.check(&o, seen); err != nil {
		return none, 0, c.fail(err)
	}
	return r, host, nil
}

// Close ends the stream; the ruler then kills everything it started. It may be called more than once, and makes a running method
// end with ErrGone.
func (c *Client) Close() error { return c.close() }

func (c *Client) usable(ctx context.Context) error {
	if err := c.broken(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// broken is why the client is unusable; nil if it is usable.
func (c *Client) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail makes err the client's end: from now on the positions of the two ends in the stream are unknown.
func (c *Client) fail(err error) error {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.looking.once.Do(func() { close(c.looking.lost) })
	c.Close()
	return err
}

func unexpected(f frame, expected string) error {
	return violation(expected, "%s", kindName(f.kind))
}

func (c *Client) send(kind byte, v any) error {
	return c.write(func() error { return writeFrame(c.s, kind, v) })
}

func (c *Client) write(do func() error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.s.SetWriteDeadline(time.Now().Add(writeGrace)) // the following write reports the error
	err := do()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.fail(fmt.Errorf("%w: it accepted nothing for %v", ErrSilent, writeGrace))
	default:
		return c.fail(fmt.Errorf("%w: %w", ErrGone, err))
	}
}

// wait runs read with the read deadline limit (zero: none) or until ctx ends, whichever is first, and gives its error a name. The
// error is ctx's own if and only if ctx ended the wait.
func (c *Client) wait(ctx context.Context, limit time.Time, read func() error) error {
	c.s.SetReadDeadline(limit) // the following read reports the error
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.s.SetReadDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	start := time.Now()
	err := read()
	if !stop() {
		<-interrupted // otherwise it would disturb the next wait
	}
	var protocol *ProtocolError
	switch {
	case err == nil || errors.As(err, &protocol):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: nothing for %v", ErrSilent, time.Since(start).Round(time.Millisecond))
	default:
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
}

// answer waits for one of the frames in kinds. When ctx ends it cancels the order, waits for the order's last frame, which is the
// last of kinds or done, and returns it with ctx's error.
func (c *Client) answer(ctx context.Context, limit time.Time, kinds ...byte) (frame, error) {
	f, err := c.expect(ctx, limit, kinds...)
	if err == nil {
		return f, nil
	}
	if c.broken() != nil || ctx.Err() == nil {
		return frame{}, err
	}
	if err := c.send(kindCancel, nil); err != nil {
		return frame{}, err
	}
	last := kinds[len(kinds)-1]
	end := time.Now().Add(cancelGrace)
	for {
		// A cancelled run may still send its ready and ended frames before done.
		f, err := c.expect(context.Background(), end, append(kinds, kindReady, kindEnded)...)
		if err != nil {
			return frame{}, err
		}
		if f.kind == last {
			return f, context.Cause(ctx)
		}
	}
}

// expect waits for one of the frames in kinds, and passes on what a look gets before that. Any error except ctx's is the client's
// end.
func (c *Client) expect(ctx context.Context, limit time.Time, kinds ...byte) (frame, error) {
	var f frame
	err := c.wait(ctx, limit, func() (err error) {
		for f, err = c.dec.next(); err == nil && f.kind == kindSeen && c.looking.take(f); {
			f, err = c.dec.next()
		}
		return err
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return frame{}, err
		}
		return frame{}, c.fail(err)
	}
	names := ""
	for _, k := range kinds {
		if f.kind == k {
			return f, nil
		}
		if names != "" {
			names += " or "
		}
		names += kindName(k)
	}
	return frame{}, c.fail(unexpected(f, names))
}
