//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/notebook"
)

// Restored checks guests that are saved and restored (engine.Saver): a restored guest goes on where it was, with its limits and its
// network. Nothing remains of one whose saving or restoring was interrupted.
func Restored(t *testing.T, s Subject, e Expectations) {
	r := newSuite(t, s, e)
	var whole time.Duration
	if t.Run("goes on", func(t *testing.T) { whole = r.goesOn(t) }) {
		t.Run("interrupted", func(t *testing.T) { r.interrupted(t, whole) })
	}
}

// goesOn saves and restores a guest with an order in progress, and returns how long that took.
func (r *suite) goesOn(t *testing.T) time.Duration {
	before := r.snapshot(t)
	s := r.connected(t, r.spec(t, notebook.Pinned, 1), notebook.NetBridge)
	s.Moments = engine.NewMoments() // LXC can save only a container whose start is timed
	g := r.provision(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), r.e.patience(20*time.Second))
	defer cancel()
	said, begun := make(chan ruler.Result, 1), make(ruler.Begun)
	go func() {
		defer close(said)
		res, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv: []string{"/bin/sh", "-c", "i=0; until [ -e end ]; do i=$((i+1)); echo $i; busybox usleep 10000; done"},
			Env:  []string{"PATH=/bin"}, Timeout: time.Hour, OutputLimit: 1 << 20, Restorable: true, Bounds: begun,
		})
		if err != nil {
			t.Errorf("the order that was in progress: %v", err)
		}
		said <- res
	}()
	select {
	case <-begun:
	case <-said: // it has said why
		t.FailNow()
	}
	pids, err := g.Processes()
	limits, lerr := g.Limits()
	if err := errors.Join(err, lerr); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	saved, err := g.(engine.Saver).Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if saved.Bytes < 1<<20 || saved.How == nil {
		t.Errorf("saved %+v: want the ruler's memory at least, and by what", saved)
	}
	if left, err := cgroups(s.ID); err != nil || len(left) > 0 {
		t.Errorf("of the saved guest there are cgroups %q, %v", left, err)
	}
	m := engine.NewMoments()
	if err := g.(engine.Saver).Restore(ctx, m); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	t.Logf("saved in %d bytes and restored in %v: %v", saved.Bytes, took.Round(time.Millisecond), m.Noted())
	if all := m.Noted(); len(all) != 1 || all[0].Name != notebook.MomentRestored {
		t.Errorf("moments of its restore: %v", all)
	}
	now, err := g.Processes()
	if err != nil || len(now) < 3 || now[0] == pids[0] {
		t.Fatalf("its processes are %v, %v; they were %v", now, err, pids)
	}
	if l, err := g.Limits(); err != nil || l != limits {
		t.Errorf("limits %+v, %v; they were %+v", l, err, limits)
	}
	// The order counts until it finds this file.
	if err := os.WriteFile(filepath.Join(fmt.Sprintf("/proc/%d/root", now[0]), ruler.ScratchDir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res := <-said
	counted := strings.Fields(string(res.Stdout))
	if len(counted) < 2 || res.Exit != 0 || res.Error != "" {
		t.Errorf("it counted to %d, exit %d %s", len(counted), res.Exit, res.Error)
	}
	for i, n := range counted {
		if n != strconv.Itoa(i+1) {
			t.Fatalf("it counted %q where %d was next", n, i+1)
		}
	}
	if _, err := g.(engine.Saver).Save(ctx); !unsupported(err) {
		t.Errorf("saving it once more: %v, want an *engine.UnsupportedError", err)
	}
	r.answers(t, g)
	r.ownLink(t, g.Address(), r.links(t, g))
	r.serve(t, g, s, g.Address())
	r.end(t, before, g, s)
	return took
}

// interrupted ends the context of saving and restoring at random moments.
func (r *suite) interrupted(t *testing.T, whole time.Duration) {
	before := r.snapshot(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	for range r.e.rounds() {
		s := r.connected(t, r.spec(t, r.e.Provisionings[0], 1), notebook.NetBridge)
		s.Moments = engine.NewMoments()
		g := r.provision(t, s)
		after := time.Duration(rnd.Float64() * float64(whole))
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err := g.(engine.Saver).Save(ctx)
		if err == nil {
			err = g.(engine.Saver).Restore(ctx, nil)
		}
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("interrupted after %v: %v, want the context's error in it", after, err)
		}
		r.destroy(t, g)
		r.nothingRemains(t, before, s.ID)
	}
}
