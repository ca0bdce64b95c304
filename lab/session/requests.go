//go:build linux

package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	record string // the file in which a load records them; "": none does

	began, ahead time.Duration // by the monotonic clock; how far the realtime clock is ahead of it
	events       []replay.Event
	full         bool  // more came than the kernel keeps
	failed       error // why the service's sockets cannot be watched
}

// mostEvents bounds a timeline. The kernel keeps as many of them until the trial is over, so that nothing is read while it is measured.
const mostEvents = 1 << 20

// requests lets a trace have a timeline.
func (g guest) requests(of *trace.Trace, what crowd.Traced, pids []int) *requests {
	r := &requests{Trace: of, unseen: g.unseen, began: trace.Clock(), ahead: leads()}
	if load, is := what.Clock.(guest); is {
		if at, is := load.Guest.(interface{ Scratch() string }); is && what.Record != "" {
			r.record = filepath.Join(at.Scratch(), what.Record)
		}
	}
	if what.Port == 0 || !of.Watches() {
		return r
	}
	namespace, ports, err := proc.Listening(pids)
	if slices.Contains(ports, uint16(what.Port)) { // others are for the service's own parts
		ports = []uint16{uint16(what.Port)}
	}
	if r.failed = errors.Join(err, of.Serves(namespace, ports)); r.failed != nil {
		r.failed = errors.Join(r.failed, of.EndTimeline())
	}
	return r
}

// leads is how far the realtime clock is ahead of the monotonic one. Of several readings the one counts during which least time passed.
func leads() (ahead time.Duration) {
	least := time.Duration(math.MaxInt64)
	for range 10 {
		before := trace.Clock()
		now := time.Now().UnixNano()
		if took := trace.Clock() - before; took < least {
			least, ahead = took, time.Duration(now)-before-took/2
		}
	}
	return ahead
}

// Stop implements crowd.Tracing.
func (r *requests) Stop() (*notebook.Trace, error) {
	watched := r.Watches()
	failed := r.failed
	if watched && failed == nil {
		failed = r.EndTimeline()
		var unseen bool
		var err error
		r.events, unseen, err = r.Timeline(make([]replay.Event, 0, 1<<16), mostEvents)
		r.full, failed = unseen || len(r.events) == mostEvents, errors.Join(failed, err)
	}
	p, err := r.Trace.Stop()
	if err != nil {
		return p, err
	}
	why := notebook.ErrorMessage(failed)
	switch {
	case r.unseen:
		why = notebook.Say("requests-in-vm")
	case failed == nil && watched:
		why = r.divide(p)
	}
	if why != nil && p.Missing[notebook.TracerRequests] == nil {
		p.Missing[notebook.TracerRequests] = why
	}
	r.events = nil
	// The account of the trial's time has no part for memory, which only a trace that looks at each thread tells from disks.
	if m, is := p.Wall[notebook.WallMemory]; is {
		p.Wall[notebook.WallBlock] += m
		delete(p.Wall, notebook.WallMemory)
	}
	return p, nil
}

// divide writes the account of the requests into the trace. why says what the account lacks; nil: nothing.
func (r *requests) divide(p *notebook.Trace) (why *notebook.Message) {
	timed, err := r.recorded()
	if err != nil {
		why = notebook.Say("load-record", "error", err)
	}
	p.Requests = replay.Account(r.events, r.began, timed, !r.full)
	switch {
	case r.full && len(r.events) > 0:
		return notebook.Say("requests-full", "seconds", (r.events[len(r.events)-1].At - r.events[0].At).Seconds())
	case p.Requests == nil:
		return notebook.Say("no-requests-seen")
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
