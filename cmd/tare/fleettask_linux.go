package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tare/desk/words"
	"tare/lab/fleet"
	"tare/lab/session"
	"tare/notebook"
)

// longestWait is how long a task waits for another Tare on its host.
const longestWait = 24 * time.Hour

// fleetTaskCommand is what a node runs: it waits until no other Tare measures on the host, and runs the study.
func fleetTaskCommand() *cobra.Command {
	var tied bool
	c := &cobra.Command{Use: "task FLEET NODE [JOB]", Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return asUse(errors.New("fleet task: needs a fleet's folder and a node"))
			}
			dir, f, err := readFleet(c, args[:1])
			if err != nil {
				return err
			}
			if !slices.Contains(f.Nodes, args[1]) {
				return fmt.Errorf("%s has no node %q", dir, args[1])
			}
			if err := session.Permitted(); err != nil {
				return err
			}
			t := task{dir: dir, fleet: f, node: args[1]}
			if len(args) == 3 {
				t.job = args[2]
			}
			ctx := c.Context()
			if tied {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() { // runs until this process ends
					io.Copy(io.Discard, os.Stdin) // only the end matters, with or without an error
					cancel()
				}()
			}
			return t.run(ctx)
		}}
	c.Flags().BoolVar(&tied, "tied", false, "stop when the standard input ends")
	return c
}

// fleetPackCommand writes a node's folder to the standard output, and fleetUnpackCommand puts it in place.
func fleetPackCommand() *cobra.Command {
	return &cobra.Command{Use: "pack FLEET NODE", Hidden: true, Args: cobra.ExactArgs(2), RunE: func(_ *cobra.Command, args []string) error {
		if err := notebook.CheckNode(args[1]); err != nil {
			return err
		}
		return fleet.Pack(os.Stdout, args[0], args[1])
	}}
}

func fleetUnpackCommand() *cobra.Command {
	return &cobra.Command{Use: "unpack FLEET NODE", Hidden: true, Args: cobra.ExactArgs(2), RunE: func(_ *cobra.Command, args []string) error {
		return fleet.Unpack(os.Stdin, args[0], args[1])
	}}
}

// fleetLeaveCommand removes a fleet's folder from a node, after what a run there left behind.
func fleetLeaveCommand() *cobra.Command {
	return &cobra.Command{Use: "leave FLEET", Hidden: true, RunE: func(c *cobra.Command, args []string) error {
		dir, _, err := readFleet(c, args)
		if err != nil {
			return err
		}
		until, cancel := context.WithTimeout(c.Context(), longestWait)
		defer cancel()
		for {
			_, err := session.Clean(until)
			if !errors.As(err, new(*session.BusyError)) {
				if err == nil {
					err = fleet.Leave(dir)
				}
				return err
			}
			if err := session.AwaitHost(until); err != nil {
				return err
			}
		}
	}}
}

// task is the run of a study on a node.
type task struct {
	dir       string
	fleet     *notebook.Fleet
	node, job string
}

// says puts the task's state into the node's folder.
func (t task) says(state, said string) error {
	return notebook.WriteTask(t.dir, t.node, notebook.FleetTask{State: state, Since: time.Now(), Job: t.job, Said: said})
}

func (t task) run(ctx context.Context) error {
	until, cancel := context.WithTimeoutCause(ctx, longestWait, fmt.Errorf("another Tare has measured on this host for %v", longestWait))
	defer cancel()
	for {
		if err := t.says(notebook.TaskWaits, ""); err != nil {
			return err
		}
		err := session.AwaitHost(until)
		if ctx.Err() == nil && err != nil {
			return errors.Join(err, t.says(notebook.TaskFailed, err.Error()))
		}
		if err == nil {
			if err := t.says(notebook.TaskMeasures, ""); err != nil {
				return err
			}
			err = t.measure(ctx)
		}
		if errors.As(err, new(*session.BusyError)) && until.Err() == nil { // another Tare was faster
			continue
		}
		return t.ended(ctx, err)
	}
}

// measure runs the study as `tare run` does.
func (t task) measure(ctx context.Context) error {
	args := runArgs(t.dir, t.node, t.fleet)
	os.Args = append([]string{os.Args[0], "run"}, args...) // what the folder records as its command, for people to repeat
	c := runCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	c.SetErr(os.Stderr)
	return c.ExecuteContext(ctx)
}

// ended writes how the run ended, and returns what the task fails with; err is what the run returned. A run with failed runs has ended nevertheless.
func (t task) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, exit(interrupted)) {
		return errors.Join(err, t.says(notebook.TaskStopped, ""))
	}
	said := ""
	if err != nil {
		said = words.Error(err)
	}
	if err != nil && !t.complete() {
		return errors.Join(err, t.says(notebook.TaskFailed, said))
	}
	if said != "" {
		fmt.Fprintln(os.Stderr, "tare:", plain(said))
	}
	return t.says(notebook.TaskDone, said)
}

// complete says whether the last session of the node's results ended as planned.
func (t task) complete() bool {
	f, err := notebook.Read(notebook.NodeResults(t.dir, t.node))
	if err != nil || len(f.Sessions) == 0 {
		return false
	}
	last := f.Sessions[len(f.Sessions)-1]
	return last.Event == "end" && !last.Reason.Is("failed") && !last.Reason.Is("interrupted")
}
