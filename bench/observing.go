//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"tare/lab/live"
	"tare/lab/observe"
	"tare/notebook"
)

// observingTrips is how many times the number goes to and fro, so that a run lasts several times as long as a process's start.
const observingTrips = 10_000

// observing measures what `tare observe` costs two processes that only wake each other, wherever the scheduler puts them.
func observing(ctx context.Context, dir string) error {
	program, err := pingpong(ctx, dir)
	if err != nil {
		return err
	}
	answer := filepath.Join(dir, "answer")
	trips := comparison{
		"A number passed to and fro between two processes, on any CPU (a trip), while they are observed",
		[]way{
			{"not observed", 0, func() (float64, error) { return gated(ctx, program, answer, nil) }},
			{"tare observe: events", eventsLimit, func() (float64, error) { return gated(ctx, program, answer, watched(ctx, false)) }},
			{"tare observe --counters", countersLimit, func() (float64, error) { return gated(ctx, program, answer, watched(ctx, true)) }},
		}, 4 * time.Minute}.run()
	return errors.Join(trips, observingService(ctx, dir))
}

// observingService measures what it costs a service that answers requests at a fixed rate.
func observingService(ctx context.Context, dir string) (err error) {
	g, err := newLimitedGroup()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends nginx
	url, err := startNginx(ctx, dir, g, 10_000, "off")
	if err != nil {
		return err
	}
	target, err := live.Find(ctx, g.dir)
	if err != nil {
		return err
	}
	return comparison{
		"nginx at 500 requests a second (the mean response time), while it is observed",
		[]way{
			{"not observed", 0, func() (float64, error) { return steady(ctx, url) }},
			{"tare observe: events", eventsLimit, func() (float64, error) { return whileObserved(ctx, target, false, url) }},
			{"tare observe --counters", countersLimit, func() (float64, error) { return whileObserved(ctx, target, true, url) }},
		}, 6 * time.Minute}.run()
}

// whileObserved does what steady does while a target is observed.
func whileObserved(ctx context.Context, target *live.Target, counters bool, url string) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, err := beginObserving(ctx, target, counters)
	if err != nil {
		return 0, err
	}
	took, err := steady(ctx, url)
	cancel()
	seen, eerr := end()
	if err := errors.Join(err, eerr); err != nil {
		return 0, err
	}
	if !counters && (seen.Requests == nil || seen.Requests.N < steadyRequests/2) {
		return 0, fmt.Errorf("it saw %+v", seen.Requests)
	}
	return took, nil
}

// The load of steady.
const (
	steadyRequests = 1000
	steadyEvery    = 2 * time.Millisecond
)

// steady sends requests at a fixed rate and returns their mean response time in seconds.
func steady(ctx context.Context, url string) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	took, failed := make([]float64, steadyRequests), make([]error, steadyRequests)
	var all sync.WaitGroup
	begin := time.Now().Add(10 * time.Millisecond)
	for i := range took {
		due := begin.Add(steadyEvery * time.Duration(i))
		time.Sleep(time.Until(due))
		all.Go(func() {
			failed[i] = get(ctx, client, url)
			took[i] = time.Since(due).Seconds()
		})
	}
	all.Wait()
	sum := 0.0
	for _, s := range took {
		sum += s
	}
	return sum / steadyRequests, errors.Join(failed...)
}

// gated starts the two processes, lets prepare begin to observe them, and returns how long a trip took. prepare's function ends the observation.
func gated(ctx context.Context, program, answer string, prepare func(pid int) (func() error, error)) (float64, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", `read go && exec "$@"`, "sh", program, "run", strconv.Itoa(observingTrips), "free", answer)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	end := func() error { return nil }
	if prepare != nil {
		end, err = prepare(cmd.Process.Pid)
	}
	if err != nil {
		return 0, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	began := time.Now()
	_, err = fmt.Fprintln(in)
	err = errors.Join(err, cmd.Wait())
	took := time.Since(began).Seconds() / observingTrips
	return took, errors.Join(err, end())
}

// watched observes a process as the command does, in parts that are as long as those of the default time.
func watched(ctx context.Context, counters bool) func(pid int) (func() error, error) {
	return func(pid int) (func() error, error) {
		target, err := live.Find(ctx, strconv.Itoa(pid))
		if err != nil {
			return nil, err
		}
		end, err := beginObserving(ctx, target, counters)
		if err != nil {
			return nil, err
		}
		return func() error {
			seen, err := end()
			if err != nil {
				return err
			}
			if !seen.Ended || !counters && seen.Figures["switches"] < observingTrips {
				return fmt.Errorf("it saw %v switches, ended: %v", seen.Figures["switches"], seen.Ended)
			}
			return nil
		}, nil
	}
}

// beginObserving begins to observe a target, until it ends or ctx is done. end waits for that.
func beginObserving(ctx context.Context, target *live.Target, counters bool) (end func() (*notebook.Observation, error), err error) {
	var seen *notebook.Observation
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		seen, err = observe.Watch(ctx, target, observe.Options{For: time.Minute, Counters: counters, Began: func() { close(began) }})
		ended <- err
	}()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("the observation ended before it began: %w", err)
	case <-began:
	}
	return func() (*notebook.Observation, error) { err := <-ended; return seen, err }, nil
}
