//go:build linux

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/lab/crowd"
	"tare/lab/idle"
	"tare/lab/study"
	"tare/notebook"
	"tare/notebook/durable"
	"tare/stats"
)

// idleFile is the file in the state folder with the cost of idle guests on this host.
const idleFile = "idle-guests.json"

const mostIdleFile = 1 << 20 // bytes

// idleAge is how long such a measurement is valid.
const idleAge = 90 * 24 * time.Hour

// idleCost measures what idle guests of the plan cost a working one, unless the host's record has it: for at least as many guests,
// of these engines, under this kernel. The answer is then in the host's record. It is unknown if a guest could not be made; the
// study's rounds then say why. A plan with one guest at a time needs nothing.
func (l *Lab) idleCost(ctx context.Context, plan *study.Plan, say func(string)) error {
	of := plan.Together()
	if len(of) == 0 {
		return nil
	}
	file := filepath.Join(l.env.State, idleFile)
	known, err := readIdle(file)
	if err != nil {
		return err
	}
	wanted := notebook.IdleCost{Kernel: l.host.Kernel, Engines: study.Engines(of), Guests: len(of)}
	if covers(known, wanted, time.Now()) {
		l.host.Idle = known
		return nil
	}
	say(fmt.Sprintf("measuring what %d idle environments cost (%s), for this and later runs", wanted.Guests, strings.Join(wanted.Engines, ", ")))
	measured, err := l.measureIdle(ctx, plan, of)
	if err != nil || measured == nil {
		return err
	}
	wanted.Time, wanted.Ratio, wanted.Low, wanted.High = time.Now().UTC(), measured.Value, measured.Low, measured.High
	l.host.Idle = &wanted
	b, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, b, 0o644)
}

// measureIdle makes the guests and measures what they cost; nil if a guest could not be made, or its processes were gone.
func (l *Lab) measureIdle(ctx context.Context, plan *study.Plan, of []notebook.Treatment) (q *stats.Quotient, err error) {
	cpus, err := l.cpus(of[0])
	if err != nil {
		return nil, err
	}
	err = plan.Idle(ctx, l, of, func(guests []crowd.Guest) {
		var pids []int
		for _, g := range guests {
			its, err := g.Processes()
			if err != nil {
				return
			}
			pids = append(pids, its...)
		}
		if c, err := idle.Cost(ctx, cpus[:1], pids); err == nil && c.HasInterval() {
			q = &c
		}
	})
	return q, errors.Join(err, ctx.Err())
}

// covers reports whether a measurement covers what is wanted.
func covers(known *notebook.IdleCost, wanted notebook.IdleCost, now time.Time) bool {
	missing := func(engine string) bool { return !slices.Contains(known.Engines, engine) }
	return known != nil && known.Kernel == wanted.Kernel && known.Guests >= wanted.Guests && now.Sub(known.Time) < idleAge && !slices.ContainsFunc(wanted.Engines, missing)
}

// readIdle reads the record of an earlier measurement; nil if there is none that can be read.
func readIdle(file string) (*notebook.IdleCost, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostIdleFile))
	if err != nil {
		return nil, err
	}
	c := &notebook.IdleCost{}
	if json.Unmarshal(b, c) != nil {
		return nil, nil // measure it again
	}
	return c, nil
}
