//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
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
	return comparison{
		"A number passed to and fro between two processes, on any CPU (a trip), while they are observed",
		[]way{
			{"not observed", 0, func() (float64, error) { return gated(ctx, program, answer, nil) }},
			{"tare observe: events", eventsLimit, func() (float64, error) { return gated(ctx, program, answer, watched(ctx, false)) }},
			{"tare observe --counters", countersLimit, func() (float64, error) { return gated(ctx, program, answer, watched(ctx, true)) }},
		}, 4 * time.Minute}.run()
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
		return func() error {
			if err := <-ended; err != nil {
				return err
			}
			if !seen.Ended || !counters && seen.Figures["switches"] < observingTrips {
				return fmt.Errorf("it saw %v switches, ended: %v", seen.Figures["switches"], seen.Ended)
			}
			return nil
		}, nil
	}
}
