package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/desk/observed"
	"tare/desk/terminal"
	"tare/lab/live"
	"tare/lab/observe"
	"tare/lab/session"
	"tare/notebook"
)

func observeCommand() *cobra.Command {
	var o observing
	c := &cobra.Command{
		Use:   "observe CONTAINER|POD|VM|UNIT|PID|CGROUP",
		Short: "Show what slows something that runs: its CPU limit, its neighbours, memory, disks",
		Long: `Observes one target that runs on this host, no matter who started it, and does not reconfigure it. The target is a
container, by its name or ID (Docker, Podman, CRI-O, containerd, LXC), or a Kubernetes pod, by NAME or NAMESPACE/NAME.
It can also be a VM, by the name of the QEMU guest, a systemd unit, a process with its descendants, by its PID, or a
cgroup, by its path. --compose and --service name a running service of a Compose file.

Tare divides the time into running, throttled, run-queue wait, waiting for memory and for disks, and other waits. The
parts add up to the time. It names who had the CPUs while the target waited. Intervals show how much the shares
differed between twenty parts of the time. They do not predict another hour.

BPF programs run at every context switch on the host. --counters only reads what the kernel counts anyway: it costs
less, and does not say who had the CPUs or for what all threads waited.

Tare records when each thread ran, what woke it, and when requests came and were answered. It replays this record in a
simulation under other CPU limits, periods, bursts and CPU sets. It predicts the mean and the 99th percentile of the
request times. --if adds a change to those that Tare tries.`,
		Example: "  sudo tare observe web --for 60s\n  sudo tare observe --compose compose.yaml --service web\n  sudo tare observe web --if limit=2\n  sudo tare observe nginx.service --watch\n  sudo tare observe 4711 --for 10s --format json",
		Args: func(c *cobra.Command, args []string) error {
			if len(o.changes) > 0 && o.counters {
				return errors.New("--if and --counters: counters predict nothing; leave out one of the two")
			}
			switch compose := o.compose != "" || o.service != ""; {
			case compose && o.compose == "":
				return errors.New("--service needs --compose FILE")
			case compose && o.service == "":
				return errors.New("--compose needs --service NAME")
			case compose && len(args) > 0:
				return fmt.Errorf("observe %q: --compose and --service name a target already; leave out one of the two", args[0])
			case !compose && len(args) != 1:
				return fmt.Errorf("observe: %d targets; must be one container, pod, VM, unit, PID or cgroup; `tare memory` lists running containers and VMs", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	tableOrJSON(c, &o.format)
	f := c.Flags()
	f.DurationVar(&o.time, "for", time.Minute, "observe for this `TIME`, from 1s to 4h")
	f.BoolVar(&o.watch, "watch", false, "repeat until interrupted or the target ends, each time for --for")
	f.BoolVar(&o.counters, "counters", false, "only read the kernel's counters: no BPF, less detail")
	f.StringArrayVar(&o.changes, "if", nil, "also predict `CHANGE` (repeatable): limit=none or limit=2,period=10ms,burst=5ms,cpus=1")
	f.StringVar(&o.compose, "compose", "", "Compose `FILE` of a service that is up; with --service")
	f.StringVar(&o.service, "service", "", "the `NAME` of the service in the Compose file")
	return c
}

// observing holds the flags of the command observe.
type observing struct {
	format           string
	time             time.Duration
	watch, counters  bool
	calls            bool // also count system calls by kind
	compose, service string
	changes          []string
}

func (o *observing) run(ctx context.Context, args []string) error {
	if err := session.Permitted(); err != nil {
		return err
	}
	target, err := o.find(ctx, args)
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		seen, err := o.once(ctx, target)
		if again && errors.Is(err, observe.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.show(observed.From(seen)); err != nil {
			return err
		}
		switch {
		case seen.Cut && !o.watch:
			return exit(interrupted)
		case !o.watch || seen.Ended || seen.Cut: // an interrupt is how --watch ends
			return nil
		}
	}
}

func (o *observing) find(ctx context.Context, args []string) (*live.Target, error) {
	if o.compose != "" {
		return live.FindService(ctx, o.compose, o.service)
	}
	return live.Find(ctx, args[0])
}

// once observes for the time, and shows on a terminal how much is left.
func (o *observing) once(ctx context.Context, target *live.Target) (*notebook.Observation, error) {
	options := observe.Options{For: o.time, Counters: o.counters, Calls: o.calls}
	for _, text := range o.changes {
		c, err := observe.ParseChange(text)
		if err != nil {
			return nil, fmt.Errorf("--if %w", err)
		}
		options.If = append(options.If, c)
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		options.Say = func(done time.Duration) {
			fmt.Fprintf(os.Stderr, "\r\x1b[Kobserving %s: %v left", plain(target.Name), max(0, o.time-done).Round(time.Second))
		}
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	return observe.Watch(ctx, target, options)
}

func (o *observing) show(a *observed.Answer) error {
	if o.format == "json" {
		return writeJSON(os.Stdout, a)
	}
	if o.watch && term.IsTerminal(int(os.Stdout.Fd())) {
		fmt.Print("\x1b[H\x1b[J") // clear the screen
	}
	return terminal.Observation(os.Stdout, a, screen(os.Stdout))
}
