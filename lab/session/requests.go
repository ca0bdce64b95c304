//go:build linux

package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/proc"
	"tare/lab/replay"
	"tare/lab/trace"
	"tare/notebook"
)

// requests is a trace that also divides the time of requests.
type requests struct {
	*trace.Trace
	unseen bool   // the guest is a virtual machine
	record string // the file in which a load records them; "": no load does

	began, ahead time.Duration // began: by the monotonic clock; ahead: how far the realtime clock is ahead of it
	events       []replay.Event
	full         bool  // no further events are kept
	failed       error // why there is no timeline
	stop         chan struct{}
	reading      sync.WaitGroup
}

// Bounds of a timeline: how many events are kept, some 80 MB, and how often they are read. The kernel keeps a million between two readings.
const (
	mostEvents   = 2 << 20
	readingEvery = time.Second
)

// requests starts to read the timeline of a trace.
func (g guest) requests(of *trace.Trace, what crowd.Traced, pids []int) *requests {
	r := &requests{Trace: of, unseen: g.unseen, began: trace.Clock(), ahead: leads(), stop: make(chan struct{})}
	if what.Clock != nil {
		if load, is := what.Clock.(guest); is {
			if at, is := load.Guest.(interface{ Scratch() string }); is && what.Record != "" {
				r.record = filepath.Join(at.Scratch(), what.Record)
			}
		}
		namespace, ports, err := proc.Listening(pids)
		r.failed = errors.Join(err, of.Serves(namespace, ports))
	}
	if of.Watches() {
		r.reading.Go(r.follow)
	}
	return r
}

// leads is how far the realtime clock is ahead of the monotonic one.
func leads() time.Duration {
	before := trace.Clock()
	now := time.Now().UnixNano()
	return time.Duration(now) - (before+trace.Clock())/2
}

// follow reads the timeline at intervals until the trace stops.
func (r *requests) follow() {
	turn := time.NewTicker(readingEvery)
	defer turn.Stop()
	for {
		select {
		case <-r.stop:
			r.read()
			return
		case <-turn.C:
			r.read()
		}
	}
}

// read reads the events since the last reading.
func (r *requests) read() {
	if r.full || r.failed != nil {
		return
	}
	var unseen bool
	if r.events, unseen, r.failed = r.Timeline(r.events, mostEvents); unseen || len(r.events) >= mostEvents {
		r.full, r.failed = true, errors.Join(r.failed, r.EndTimeline())
	}
}

// Stop implements crowd.Tracing.
func (r *requests) Stop() (*notebook.Trace, error) {
	close(r.stop)
	r.reading.Wait()
	watched := r.Watches()
	p, err := r.Trace.Stop()
	if err != nil {
		return p, err
	}
	say := func(why *notebook.Message) {
		if why != nil && p.Missing[notebook.TracerRequests] == nil {
			p.Missing[notebook.TracerRequests] = why
		}
	}
	switch {
	case r.unseen:
		say(notebook.Say("requests-in-vm"))
	case r.failed != nil:
		say(notebook.ErrorMessage(r.failed))
	case watched:
		say(r.divide(p))
	}
	return p, nil
}

// divide writes the account of the requests into the trace. why says what the account lacks; nil: nothing.
func (r *requests) divide(p *notebook.Trace) (why *notebook.Message) {
	timed, err := r.recorded()
	if err != nil {
		why = notebook.Say("load-record", "error", err)
	}
	if p.Requests = replay.Account(r.events, r.began, timed); p.Requests == nil {
		return notebook.Say("no-requests-seen")
	}
	if r.full {
		return notebook.Say("requests-full", "seconds", (r.events[len(r.events)-1].At - r.events[0].At).Seconds())
	}
	return why
}

// clockStep is how far someone may set the realtime clock during a trial.
const clockStep = time.Millisecond

// recorded reads what the load recorded; nothing if the load keeps no record.
func (r *requests) recorded() ([]replay.Operation, error) {
	if r.record == "" {
		return nil, nil
	}
	dir, err := os.OpenRoot(filepath.Dir(r.record))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(filepath.Base(r.record), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", r.record))
	}
	return replay.ReadOperations(io.LimitReader(f, mostRecord), func() (time.Duration, error) {
		if set := leads() - r.ahead; set.Abs() > clockStep {
			return 0, fmt.Errorf("the realtime clock was set by %v during the run", set)
		}
		return r.ahead, nil
	})
}

// mostRecord bounds a load's record, in bytes.
const mostRecord = 256 << 20
