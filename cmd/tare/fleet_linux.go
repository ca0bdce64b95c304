package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/desk/words"
	"tare/lab/fleet"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/studies"
)

// fleetCommand has many nodes measure one study.
func fleetCommand() *cobra.Command {
	c := &cobra.Command{Use: "fleet", Short: "Run a study on many hosts of a Slurm cluster",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q; must be run, status or cancel", args[0], c.CommandPath())
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  tare fleet run quick --slurm --out F\n  tare fleet status F\n  tare summary F"}
	c.AddCommand(fleetRunCommand(), fleetStatusCommand(), fleetCancelCommand(), fleetTaskCommand())
	return c
}

// launching holds the flags of fleet run.
type launching struct {
	running
	slurm     bool
	cluster   fleet.Slurm
	most      int
	given     []string // flags of tare run
	options   []string // of sbatch
	continues bool     // flags were given that only a new fleet can have
}

func fleetRunCommand() *cobra.Command {
	var l launching
	c := &cobra.Command{
		Use:   "run STUDY|FILE --slurm [flags] [-- OPTION…]",
		Short: "Run a study on each node of a Slurm cluster",
		Long: `Submits a job for each node of a partition of the Slurm cluster. A job runs the study on its node, alone on it, with a results
folder of its own in the fleet's folder. All nodes must have this folder at the same path. Tare needs root there: jobs of
other users call sudo -n.

If a job is requeued, it continues where it stopped. The same command again starts tasks on the nodes whose run is not complete.
If another Tare measures on the host, the task waits for its end, for at most a day.

--partition and --constraint choose nodes, and --max-hosts takes a random sample of them. Options after -- go to sbatch. Each
job gets the other flags as flags of tare run. --plan prints the script and the jobs, and submits nothing.`,
		Example: `  tare fleet run quick --slurm --plan
  tare fleet run quick --slurm --out F
  tare fleet run ./mine.yaml --slurm --partition compute --constraint icelake --max-hosts 50 --time-budget 30m
  tare fleet run quick --slurm -- --account=physics --time=02:00:00`,
		RunE: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n >= 0 {
				args, l.options = args[:n], args[n:]
			}
			if len(args) != 1 {
				return asUse(errors.New("fleet run: name one study (tare study list) or one study file"))
			}
			if err := l.check(c); err != nil {
				return err
			}
			return l.run(c.Context(), args[0])
		},
	}
	l.flags(c, "", "")
	l.timing(c)
	f := c.Flags()
	f.Lookup("out").Usage = "folder of the fleet; continues the study on nodes that have not finished it (default tare-fleet-STUDY-TIME)"
	f.Lookup("plan").Usage = "print the script and the jobs; submit nothing"
	for _, name := range notOnNodes {
		f.Lookup(name).Hidden = true
	}
	f.BoolVar(&l.slurm, "slurm", false, "submit to the Slurm cluster of this machine with sbatch")
	f.StringVar(&l.cluster.Partition, "partition", "", "Slurm partition whose nodes measure (default: the cluster's)")
	f.StringSliceVar(&l.cluster.Features, "constraint", nil, "use only nodes with these Slurm features: `LIST`")
	f.IntVar(&l.most, "max-hosts", 0, "use at most this many nodes, a random sample (default: all)")
	return c
}

// notOnNodes are flags of tare run that have no meaning for the run of a node.
var notOnNodes = []string{"format", "host", "silent", "compare", "until", "quiet"}

// ownFlags are the flags of fleet run that the nodes do not get.
var ownFlags = append([]string{"out", "plan", "slurm", "partition", "constraint", "max-hosts"}, notOnNodes...)

func (l *launching) check(c *cobra.Command) error {
	if err := l.running.check(c); err != nil {
		return err
	}
	if err := notEmpty(c, "partition", "constraint"); err != nil {
		return err
	}
	for _, name := range notOnNodes {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: this flag of tare run is not allowed for a fleet", name)
		}
	}
	if !l.slurm {
		return errors.New("--slurm is missing: it says what starts the tasks")
	}
	if l.most < 0 || c.Flags().Changed("max-hosts") && l.most == 0 {
		return fmt.Errorf("--max-hosts %d: must be at least 1", l.most)
	}
	if err := l.cluster.CheckOptions(l.options); err != nil {
		return err
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		l.continues = l.continues || !slices.Contains([]string{"out", "plan", "slurm"}, f.Name)
		if slices.Contains(ownFlags, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, v := range values {
			if abs, err := filepath.Abs(v); err == nil && (f.Name == "input" || f.Name == "vm-kernel") && v != "default" {
				v = abs // nodes have another working folder
			}
			l.given = append(l.given, "--"+f.Name+"="+v)
		}
	})
	l.continues = l.continues || len(l.options) > 0
	return nil
}

// run makes the fleet's folder, or continues with it, and starts the tasks.
func (l *launching) run(ctx context.Context, study string) error {
	spec, err := l.study(study, "")
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(cmp.Or(l.out, fmt.Sprintf("tare-fleet-%s-%s", spec.Name, time.Now().Format("20060102-150405"))))
	if err != nil {
		return err
	}
	if err := l.cluster.CheckFolder(dir); err != nil {
		return err
	}
	f, err := notebook.ReadFleet(dir)
	if err == nil {
		return l.resume(ctx, dir, f, spec.Name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	nodes, err := l.cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	chosen, left := fleet.Choose(nodes, l.most)
	tellLeftOut(os.Stderr, left)
	if len(chosen) == 0 {
		return errors.New("no node can be used; the lines above say why")
	}
	f = &notebook.Fleet{Tare: version(), ID: "tare-" + randomID(), Study: spec.Name, Created: time.Now(), By: "slurm", Run: l.given, With: l.options}
	for _, n := range chosen {
		f.Nodes = append(f.Nodes, n.Name)
	}
	if l.plan {
		return l.show(os.Stdout, dir, f)
	}
	source, err := l.source(spec, study)
	if err != nil {
		return err
	}
	if err := fleet.Make(dir, f, source); err != nil {
		return err
	}
	return l.begin(ctx, dir, f, f.Nodes)
}

// source is the text of a user's study file; nil: the study ships with Tare. It fails where the file names files beside it, which the nodes lack.
func (l *launching) source(spec *studyfile.Spec, study string) ([]byte, error) {
	if slices.Contains(studyfile.Shipped(studies.FS), study) {
		return nil, nil
	}
	alone, err := studyfile.Parse(study, []byte(spec.Source), os.DevNull, session.Known)
	if err != nil {
		return nil, err
	}
	if _, err := checkStudy(alone); err != nil {
		return nil, fmt.Errorf("a fleet gets only the study file, not the files beside it; write absolute paths that all nodes have: %w", err)
	}
	return []byte(spec.Source), nil
}

// randomID is a name that no other fleet has.
func randomID() string {
	n := rand.Uint64()
	return hex.EncodeToString([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32)})
}

// resume starts tasks on the nodes whose run has not ended.
func (l *launching) resume(ctx context.Context, dir string, f *notebook.Fleet, study string) error {
	if f.Study != study {
		return fmt.Errorf("%s is a fleet of the study %s, not %s: name another folder with --out", dir, f.Study, study)
	}
	if l.continues {
		return fmt.Errorf("%s exists, and continues with the flags of its first command: leave them out, or name another folder with --out", dir)
	}
	jobs, err := l.cluster.Jobs(ctx, f)
	if err != nil {
		return err
	}
	var open []string
	for _, s := range fleet.Statuses(dir, f, jobs) {
		if s.Open() {
			open = append(open, s.Node)
		}
	}
	if len(open) == 0 {
		fmt.Printf("%s: each of the %s has finished, or has a task.\n", dir, words.Count(len(f.Nodes), "node"))
		return nil
	}
	if l.plan {
		f.Nodes = open
		return l.show(os.Stdout, dir, f)
	}
	return l.begin(ctx, dir, f, open)
}

// begin starts the tasks of nodes.
func (l *launching) begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	started := fleet.Begin(ctx, l.cluster, dir, f, nodes, func(node string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "tare: %s: %s\n", node, plain(short(err.Error())))
		}
	})
	if err := ctx.Err(); err != nil {
		fmt.Fprintf(os.Stderr, "tare: interrupted; %s submitted; the same command submits the others, and tare fleet cancel %s ends them\n", words.Count(started, "job"), dir)
		return exit(interrupted)
	}
	if started == 0 {
		return errors.New("no job was submitted")
	}
	fmt.Printf("%s submitted. How far they are: tare fleet status %s\nResults, also of unfinished runs: tare summary %[2]s\n", words.Count(started, "job"), words.Shell(dir))
	if started < len(nodes) {
		return fmt.Errorf("%s got no job", words.Count(len(nodes)-started, "node"))
	}
	return nil
}

// show prints what would be submitted.
func (l *launching) show(w io.Writer, dir string, f *notebook.Fleet) error {
	const most = 3
	fmt.Fprintf(w, "%s in %s, one job each. The script of a job:\n\n%s\n", words.Count(len(f.Nodes), "node"), dir, l.cluster.Script())
	for _, node := range f.Nodes[:min(most, len(f.Nodes))] {
		fmt.Fprintln(w, l.cluster.Plan(dir, f, node))
	}
	if more := len(f.Nodes) - most; more > 0 {
		fmt.Fprintf(w, "… and %d more, for %s\n", more, strings.Join(f.Nodes[most:min(most+10, len(f.Nodes))], ", ")+map[bool]string{true: ", …"}[more > 10])
	}
	fmt.Fprintf(w, "\nOn each node: tare run %s\n", strings.Join(runArgs(dir, "NODE", f), " "))
	return nil
}

// tellLeftOut says which nodes get no task, and why: one line for each reason.
func tellLeftOut(w io.Writer, left []fleet.Node) {
	by := map[string][]string{}
	var reasons []string
	for _, n := range left {
		if by[n.Why] == nil {
			reasons = append(reasons, n.Why)
		}
		by[n.Why] = append(by[n.Why], n.Name)
	}
	for _, why := range reasons {
		names := by[why]
		said := strings.Join(names[:min(8, len(names))], ", ")
		if more := len(names) - 8; more > 0 {
			said += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(w, "Left out: %s: %s\n", plain(said), plain(why))
	}
}

// runArgs are the arguments of `tare run` for a node.
func runArgs(dir, node string, f *notebook.Fleet) []string {
	study := f.Study
	if _, err := os.Stat(filepath.Join(dir, fleet.StudyFile)); err == nil {
		study = filepath.Join(dir, fleet.StudyFile)
	}
	return slices.Concat(f.Run, []string{"--out=" + notebook.NodeResults(dir, node), "--", study})
}

// readFleet reads the fleet of a command's only argument.
func readFleet(c *cobra.Command, args []string) (dir string, f *notebook.Fleet, err error) {
	if len(args) != 1 {
		return "", nil, asUse(fmt.Errorf("fleet %s: name one fleet's folder", c.Name()))
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

func fleetCancelCommand() *cobra.Command {
	return &cobra.Command{Use: "cancel FLEET", Short: "End the tasks of a fleet; their results stay",
		Long:    "Cancels the jobs of a fleet and waits up to two minutes until they have ended. A run that is cancelled removes its guests and restores its\nhost. The results so far stay, and tare fleet run with the same --out continues.",
		Example: "  tare fleet cancel F",
		RunE: func(c *cobra.Command, args []string) error {
			_, f, err := readFleet(c, args)
			if err != nil {
				return err
			}
			return cancelFleet(c.Context(), fleet.Slurm{}, f)
		}}
}

// cancelFleet ends the tasks, and waits for their end.
func cancelFleet(ctx context.Context, with fleet.Scheduler, f *notebook.Fleet) error {
	const most = 2 * time.Minute
	jobs, err := with.Jobs(ctx, f)
	if err != nil {
		return err
	}
	all := len(jobs)
	if all == 0 {
		fmt.Println("The fleet has no job now.")
		return nil
	}
	if err := with.Cancel(ctx, f); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for len(jobs) > 0 {
		select {
		case <-bounded.Done():
			return fmt.Errorf("%s cancelled, but %d of them still end; tare fleet status shows them", words.Count(all, "job"), len(jobs))
		case <-time.After(time.Second): // the scheduler tells nobody
		}
		if jobs, err = with.Jobs(bounded, f); err != nil {
			return err
		}
	}
	fmt.Printf("%s ended.\n", words.Count(all, "job"))
	return nil
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
	c := &cobra.Command{Use: "status FLEET", Short: "Show how far each node of a fleet is",
		Long: `Shows a line for each node. Its task can be queued, starting, waiting (another Tare measures on the same host), measuring,
done, stopped, failed or lost (it ended before it could say why; the last column names its log).`,
		Example: "  tare fleet status F\n  tare fleet status F --format json | jq '.[] | select(.state == \"failed\")'",
		RunE: func(c *cobra.Command, args []string) error {
			dir, f, err := readFleet(c, args)
			if err != nil {
				return err
			}
			jobs, err := fleet.Slurm{}.Jobs(c.Context(), f)
			if err != nil {
				fmt.Fprintf(os.Stderr, "tare: the scheduler does not say which tasks run: %s\n", plain(short(err.Error())))
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

// remark is what a node's line says besides.
func remark(dir string, s fleet.Status) string {
	var all []string
	switch {
	case s.Said != "":
		all = append(all, s.Said)
	case s.State == fleet.Queued:
		all = append(all, "the scheduler says: "+s.Job.Why)
	case s.State == fleet.Waiting:
		all = append(all, "another Tare measures on the same host")
	case s.State == fleet.Lost:
		all = append(all, "its log: "+fleet.Log(dir, s.Node))
	}
	if s.SameAs != "" {
		all = append(all, "the same host as "+s.SameAs)
	}
	return strings.Join(all, "; ")
}
