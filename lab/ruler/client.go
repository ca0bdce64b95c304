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

// How long the host waits for what the guest does beside the work itself. Generous, for a guest under software
// emulation on a busy host; they only have to end.
const (
	answerGrace = 30 * time.Second // beyond what an answer may take by its order
	prepareTime = 3 * time.Minute  // to empty the scratch folder, which may hold millions of files
	cancelGrace = 20 * time.Second // for the answer to a cancelled order; then the guest is given up
	writeGrace  = 10 * time.Second // for the guest to take a frame in
	clockPings  = 9                // of which the quickest says what time it is there
)

// Stream is what a Client talks over: a net.Conn, or an *os.File that takes deadlines.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Client is the host's end of the stream to a guest's ruler. It does not trust the guest: whatever arrives, each
// method ends in bounded time, with an error where the guest is at fault (ErrGone, ErrProtocol, ErrSilent). It is
// not for use by several goroutines at once, except that Close may be called at any time, and Frames and Files beside Run.
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
	err     error      // why the client is of no more use
}

func newClient(s Stream) *Client {
	return &Client{s: s, dec: decoder{r: s}, close: sync.OnceValue(s.Close), looking: looking{lost: make(chan struct{})}}
}

// Connect waits, until ctx is done, for the ruler at the other end of s to say hello. It owns s from then on, and
// closes it on error.
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

// Hello is what the ruler said of itself and its guest.
func (c *Client) Hello() Hello { return c.hello }

// Began is when the first byte came from the ruler, which says one before it does anything else.
func (c *Client) Began() time.Time { return c.dec.first }

// Greeted is when the ruler's hello came.
func (c *Client) Greeted() time.Time { return c.greeted }

// RoundTrip is the smallest time that a Ping has taken so far; 0 where there was none, and so no Run either.
func (c *Client) RoundTrip() time.Duration { return c.rtt }

// Ping measures the time from sending an empty order to its answer. It goes the same way in the ruler as a Run.
func (c *Client) Ping(ctx context.Context) (time.Duration, error) {
	d, _, err := c.ping(ctx)
	return d, err
}

// ping gives also how far the guest's calendar clock is ahead of the host's, if the answer took half of the time.
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

// Clock says how far the guest's calendar clock is ahead of the host's, by the quickest of several pings, and how wrong that
// can be: by half of what it took.
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

// Cost has the ruler time n empty processes (1 to MaxCost), one straight after the other, just as it times work, and
// returns what it measured. With argv they are processes of that command, given by its path in the guest, which must
// succeed each time; so the ruler can be compared with other instruments on the same program.
func (c *Client) Cost(ctx context.Context, n int, argv ...string) ([]time.Duration, error) {
	if n < 1 || n > MaxCost {
		return nil, fmt.Errorf("ruler's cost of %d processes: the number must be 1 to %d", n, MaxCost)
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

// Run has the ruler run and measure o. The duration is the interval of Result.Elapsed by the host's clock: from sending the word to go
// until the guest says that the process has ended, less the (short) times that the guest says it took to start the clock and to say
// that it has stopped. The way there and back is in it, for which RoundTrip is a measure: what it took this time is not known, and on a
// busy host it varies by more than a short trial takes.
//
// When ctx ends the order is cancelled, everything it started is killed, and ctx's error is returned, with what it had printed
// until then in the Result; the client remains good if the guest answers to that within seconds. An order that the guest could not
// start is no error: Result.Error says why. An order that breaks Order's limits is an error before anything is sent.
func (c *Client) Run(ctx context.Context, o Order) (Result, time.Duration, error) {
	var none Result
	if err := o.check(); err != nil {
		return none, 0, err
	}
	if err := c.usable(ctx); err != nil {
		return none, 0, err
	}
	if c.rtt == 0 { // by it is judged what the two clocks say
		if _, err := c.Ping(ctx); err != nil {
			return none, 0, err
		}
	}
	if err := c.send(kindRun, o); err != nil {
		return none, 0, err
	}
	tracing := time.Duration(0) // that the guest may take for each answer of its tracer
	if len(o.Tracers) > 0 {
		tracing = traceTime
	}
	f, err := c.answer(ctx, time.Now().Add(tracing+prepareTime+answerGrace), kindReady, kindDone)
	if err != nil {
		return none, 0, err
	}
	var host, seen time.Duration
	if f.kind == kindReady {
		// Before the clock, and after it: telling it is not in the interval.
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

// Close ends the stream; the ruler then kills all it started. It may be called more than once, and makes a method
// in progress end with ErrGone.
func (c *Client) Close() error { return c.close() }

func (c *Client) usable(ctx context.Context) error {
	if err := c.broken(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// broken is why the client is of no more use; nil: it is.
func (c *Client) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail makes err the client's end: after it nothing is known of where in the stream the two ends are.
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
	c.s.SetWriteDeadline(time.Now().Add(writeGrace)) // its error is that of the write which follows
	err := do()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.fail(fmt.Errorf("%w: it took nothing in for %v", ErrSilent, writeGrace))
	default:
		return c.fail(fmt.Errorf("%w: %w", ErrGone, err))
	}
}

// wait runs read with the read deadline limit (zero: none) or the end of ctx, whichever is first, and gives its
// error a name. The error is context's own if and only if it was ctx that ended the wait.
func (c *Client) wait(ctx context.Context, limit time.Time, read func() error) error {
	c.s.SetReadDeadline(limit) // its error is that of the read which follows
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.s.SetReadDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	start := time.Now()
	err := read()
	if !stop() {
		<-interrupted // or it would disturb the next wait
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

// answer waits for one of the frames in kinds. When ctx ends it cancels the order, waits for the order's last
// frame, which is the last of kinds or done, and returns it with ctx's error.
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
		// A cancelled run may still have its ready and ended frames on the way before done.
		f, err := c.expect(context.Background(), end, append(kinds, kindReady, kindEnded)...)
		if err != nil {
			return frame{}, err
		}
		if f.kind == last {
			return f, context.Cause(ctx)
		}
	}
}

// expect waits for one of the frames in kinds, and hands on what a look gets before. Any error but ctx's is the client's end.
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
