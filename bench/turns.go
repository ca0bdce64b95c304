//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// In the same wall time, interleaved trials must make intervals at least turnsLimit times as narrow as one guest after the other, in the
// median of turnsPairs pairs of studies; on a busy host at least turnsBusy times.
const (
	turnsLimit = 2.5
	turnsBusy  = 2.0
	turnsPairs = 5
	turnsLong  = 45 * time.Second // of each study
)

// turned has half the interval's width of each container in a study, as a share of its ratio, and the study's rounds.
type turned struct {
	halves []float64
	most   []float64 // estimate of how many times as narrow they would be with only the noise of trials
	rounds int
}

// half is the median half-width.
func (t turned) half() float64 {
	var sum float64
	for _, h := range t.halves {
		sum += math.Log(h)
	}
	return math.Exp(sum / float64(len(t.halves)))
}

// turnsPair is two studies of equal wall time.
type turnsPair struct{ sequential, interleaved turned }

// turns compares the two orders of a study of cpu on bare metal and in two Docker containers, with a CPU quota and with a CPU set.
func turns(ctx context.Context, dir string) error {
	busy, others, err := busyHost(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe same wall time (%v), interleaved against one at a time: cpu in two Docker containers (others used %.0f %% of the CPU)\n", turnsLong, 100*others)
	// The first study on a host also builds root filesystems and measures what idle guests cost. It counts for neither order.
	if _, err := turnsStudy(ctx, dir, notebook.OrderInterleaved); err != nil {
		return err
	}
	var pairs []turnsPair
	for n := range turnsPairs {
		var p turnsPair
		ways := []func() error{
			func() (err error) { p.sequential, err = turnsStudy(ctx, dir, notebook.OrderSequential); return err },
			func() (err error) { p.interleaved, err = turnsStudy(ctx, dir, notebook.OrderInterleaved); return err },
		}
		for _, i := range rand.New(rand.NewPCG(4, uint64(n))).Perm(len(ways)) {
			if err := ways[i](); err != nil {
				return err
			}
		}
		fmt.Printf("  pair %d: one at a time %s; interleaved %s\n", n+1, p.sequential, p.interleaved)
		pairs = append(pairs, p)
	}
	return judgeTurns(pairs, busy)
}

// String gives the widths.
func (t turned) String() string {
	var all []string
	for _, h := range t.halves {
		all = append(all, fmt.Sprintf("± %.2f %%", 100*h))
	}
	return fmt.Sprintf("%s (%d rounds)", strings.Join(all, " and "), t.rounds)
}

// judgeTurns prints how many times as narrow the intervals are. The error says that the limit was missed.
func judgeTurns(pairs []turnsPair, busy bool) error {
	var times, most []float64
	for _, p := range pairs {
		times, most = append(times, p.sequential.half()/p.interleaved.half()), append(most, p.sequential.most...)
	}
	limit, host := turnsLimit, "host"
	if busy {
		limit, host = turnsBusy, "busy host"
	}
	median, possible, v := stats.Median(times), stats.Median(most), met
	switch {
	case median < limit && possible < limit:
		v = notDecided + fmt.Sprintf(", for guests one at a time differed only %.1f times as much as the noise of their trials explains", possible)
	case median < limit:
		v = notMet
	}
	fmt.Printf("  %.2f times as narrow in the median of %d pairs (%.2f to %.2f)   at least %.1f on this %s: %s\n", median, len(times), slices.Min(times), slices.Max(times), limit, host, v)
	if v == notMet {
		return fmt.Errorf("%.2f times as narrow; must be at least %.1f", median, limit)
	}
	return nil
}

// busyHost reports whether `tare doctor --noise` calls the host busy, and the share of its CPU time that others used.
func busyHost(ctx context.Context) (busy bool, others float64, err error) {
	out, err := exec.CommandContext(ctx, "bin/tare", "doctor", "--noise", "--format", "json").Output()
	if err != nil {
		return false, 0, fmt.Errorf("tare doctor --noise: %w", err)
	}
	var r struct {
		Busy   bool
		Others float64
	}
	err = json.Unmarshal(out, &r)
	return r.Busy, r.Others, err
}

// turnsStudy runs the study in the given order until the wall time is over.
func turnsStudy(ctx context.Context, dir, order string) (t turned, err error) {
	file, out := filepath.Join(dir, "turns.yaml"), filepath.Join(dir, "turns-"+order)
	text := "name: turns\ntitle: the two orders\nworkloads: [{name: cpu, params: {millions: 100}}]\n" +
		"platforms: [{platform: bm}, {platform: cn, engines: [docker], provisioning: [vanilla, pinned]}]\ninstances: [1/1GB]\n" +
		"design: {rounds: {floor: 200, cap: 200}, trials: 8, warmups: 1, timeout: 1m, order: " + order + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	if said, err := exec.CommandContext(ctx, "bin/tare", "run", file, "--out", out, "--time-budget", turnsLong.String()).CombinedOutput(); err != nil {
		return t, fmt.Errorf("tare run: %w: %s", err, said)
	}
	sum, err := data.Read([]string{out}, data.Options{})
	if err != nil {
		return t, err
	}
	for _, r := range sum.Rows {
		if r.Treatment.Platform != notebook.CN {
			continue
		}
		q := r.Quotient()
		if !q.HasInterval() {
			return t, fmt.Errorf("%s, %s: no interval after %d rounds in %v", r.Treatment.ID, order, q.N, turnsLong)
		}
		t.halves, t.rounds = append(t.halves, try{ratio: q}.half()), q.N
		t.most = append(t.most, atMost(r, sum.Rows))
	}
	if len(t.halves) != 2 {
		return t, fmt.Errorf("%s: %d containers instead of 2", order, len(t.halves))
	}
	return t, nil
}

// atMost estimates how many times as narrow the interval of a row's ratio would be with only the noise from one trial to the next.
// That noise is the Allan variance of successive trials, which a slow change of the host's speed hardly affects.
func atMost(r *data.Row, rows []*data.Row) float64 {
	base := rows[slices.IndexFunc(rows, (*data.Row).IsBaseline)]
	x, y := byRound(r), byRound(base)
	var ratios []float64 // one for each round
	var noise float64    // variance of such a ratio, summed over the rounds
	for round, values := range x {
		theirs := y[round]
		if len(values) < 2 || len(theirs) < 2 {
			continue
		}
		ratios = append(ratios, stats.Mean(values, stats.Sure(0)).Value/stats.Mean(theirs, stats.Sure(0)).Value)
		for _, v := range [][]float64{values, theirs} {
			noise += stats.Allan(v, 1) / float64(len(v))
		}
	}
	return stats.Spread(ratios) / math.Sqrt(noise/float64(len(ratios)))
}

// byRound are a row's trials, in their order.
func byRound(r *data.Row) map[int][]float64 {
	all := map[int][]float64{}
	for _, d := range r.Dots {
		all[d.Round] = append(all[d.Round], d.Value)
	}
	return all
}
