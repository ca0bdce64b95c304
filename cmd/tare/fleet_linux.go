package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tare/desk/words"
	"tare/lab/fleet"
	"tare/notebook"
)

// fleetCommand runs one study on many nodes.
func fleetCommand() *cobra.Command {
	c := &cobra.Command{Use: "fleet", Short: "Run a study on many hosts, through Slurm, Kubernetes or ssh",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q; must be run, status or cancel", args[0], c.CommandPath())
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  tare fleet run quick --slurm --out F\n  tare fleet status F\n  tare summary F"}
	c.AddCommand(fleetRunCommand(), fleetStatusCommand(), fleetCancelCommand(), fleetTaskCommand(), fleetPackCommand(), fleetUnpackCommand(), fleetLeaveCommand())
	return c
}

// readFleet reads the fleet of a command's only argument.
func readFleet(c *cobra.Command, args []string) (dir string, f *notebook.Fleet, err error) {
	if len(args) != 1 {
		return "", nil, asUse(fmt.Errorf("fleet %s: name the folder of one fleet", c.Name()))
	}
	if dir, err = filepath.Abs(args[0]); err != nil {
		return "", nil, err
	}
	f, err = notebook.ReadFleet(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not the folder of a fleet: name one that `tare fleet run` made", args[0])
	}
	return dir, f, err
}

// openFleet is readFleet with what reaches the fleet's nodes.
func openFleet(c *cobra.Command, args []string) (dir string, f *notebook.Fleet, by reach, err error) {
	if dir, f, err = readFleet(c, args); err == nil {
		by, err = reachOf(f)
	}
	return dir, f, by, err
}

func fleetCancelCommand() *cobra.Command {
	return &cobra.Command{Use: "cancel FLEET", Short: "Cancel the jobs of a fleet and keep their results",
		Long: `Cancels the jobs of a fleet and waits until they have ended. A cancelled run removes its containers and VMs, and restores its
host. The results so far stay. tare fleet run with the same --out continues. On Kubernetes it first fetches the results, and
then removes everything that the fleet has in the cluster and on its nodes.`,
		Example: "  tare fleet cancel F",
		RunE: func(c *cobra.Command, args []string) error {
			dir, f, by, err := openFleet(c, args)
			if err != nil {
				return err
			}
			return by.cancel(c.Context(), dir, f)
		}}
}

// nodeStatus is a node's status in JSON.
type nodeStatus struct {
	Node       string     `json:"node"`
	State      string     `json:"state"`
	Since      *time.Time `json:"since"` // null: not known
	Job        string     `json:"job"`
	Host       string     `json:"host"`
	Hostname   string     `json:"hostname"`
	SameHostAs string     `json:"same_host_as"`
	Rounds     int        `json:"rounds"`
	MostRounds int        `json:"rounds_cap"`
	Runs       int        `json:"runs"`
	Said       string     `json:"said"`
}

func fleetStatusCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "status FLEET", Short: "Show the progress of each node of a fleet",
		Long: `Shows a line for each node, with the state of its task: queued, starting, waiting (another Tare is measuring on the same host),
measuring, ended (its results are still on the node: tare fleet run fetches them), done, stopped, failed or lost. A lost task
ended before it could say why; the last column names its log.`,
		Example: "  tare fleet status F\n  tare fleet status F --format json | jq '.[] | select(.state == \"failed\")'",
		RunE: func(c *cobra.Command, args []string) error {
			dir, f, by, err := openFleet(c, args)
			if err != nil {
				return err
			}
			jobs, err := by.jobs(c.Context(), dir, f)
			if err != nil {
				fmt.Fprintf(os.Stderr, "tare: cannot ask the scheduler which tasks run: %s\n", plain(short(err.Error())))
				jobs = nil
			}
			all := fleet.Statuses(dir, f, jobs)
			if format == "json" {
				return writeJSON(os.Stdout, statusJSON(all))
			}
			return printStatus(os.Stdout, dir, all)
		}}
	tableOrJSON(c, &format)
	return c
}

func statusJSON(all []fleet.Status) []nodeStatus {
	out := make([]nodeStatus, len(all))
	for i, s := range all {
		out[i] = nodeStatus{Node: s.Node, State: string(s.State), Job: s.Job.ID, Host: s.Host, Hostname: s.Name, SameHostAs: s.SameAs, Rounds: s.Rounds, MostRounds: s.Most, Runs: s.Runs, Said: s.Said}
		if !s.Since.IsZero() {
			out[i].Since = &s.Since
		}
	}
	return out
}

// printStatus prints a line for each node, after how many are in each state.
func printStatus(w io.Writer, dir string, all []fleet.Status) error {
	counts, order := map[fleet.State]int{}, []fleet.State{}
	for _, s := range all {
		if counts[s.State] == 0 {
			order = append(order, s.State)
		}
		counts[s.State]++
	}
	said := make([]string, len(order))
	for i, state := range order {
		said[i] = fmt.Sprintf("%d %s", counts[state], state)
	}
	fmt.Fprintf(w, "%s: %s\n\n", words.Count(len(all), "node"), strings.Join(said, ", "))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "node\tstate\tsince\trounds\truns\t")
	for _, s := range all {
		since, rounds := "", "–"
		if !s.Since.IsZero() {
			since = s.Since.Local().Format("2006-01-02 15:04")
		}
		if s.Most > 0 {
			rounds = fmt.Sprintf("%d of at most %d", s.Rounds, s.Most)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", plain(s.Node), s.State, since, rounds, s.Runs, plain(short(remark(dir, s))))
	}
	return t.Flush()
}

// remark is the last column of a node's line.
func remark(dir string, s fleet.Status) string {
	var all []string
	switch {
	case s.Said != "":
		all = append(all, s.Said)
	case s.State == fleet.Queued && s.Job.Why != "" && s.Job.Why != "None":
		all = append(all, "the scheduler says: "+s.Job.Why)
	case s.State == fleet.Waiting:
		all = append(all, "another Tare is measuring on the same host")
	case s.State == fleet.Lost || s.Killed:
		said := "its log: " + fleet.Log(dir, s.Node)
		if _, err := os.Stat(fleet.Log(dir, s.Node)); errors.Is(err, fs.ErrNotExist) {
			said = "its task never began"
		} else if s.Killed {
			said = "its task was killed; " + said
		}
		all = append(all, said)
	}
	if s.Ahead != 0 {
		all = append(all, fmt.Sprintf("its clock is %v %s", s.Ahead.Abs(), map[bool]string{true: "ahead", false: "behind"}[s.Ahead > 0]))
	}
	if s.SameAs != "" {
		all = append(all, "the same host as "+s.SameAs)
	}
	return strings.Join(all, "; ")
}
