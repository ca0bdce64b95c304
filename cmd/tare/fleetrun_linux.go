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
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/desk/words"
	"tare/lab/fleet"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/notebook/durable"
	"tare/studies"
)

// launching holds the flags of fleet run.
type launching struct {
	running
	slurm     bool
	hosts     string // file with machines
	cluster   fleet.Slurm
	most      int
	given     []string // flags of tare run
	options   []string // of sbatch
	continues bool     // flags were given that only a new fleet can have
}

func fleetRunCommand() *cobra.Command {
	var l launching
	c := &cobra.Command{
		Use:   "run STUDY|FILE --slurm|--hosts FILE [flags] [-- OPTION…]",
		Short: "Run a study on each node of a Slurm cluster, or on each machine in a list",
		Long: `Runs the study on each node, and collects a results folder from each in the fleet's folder. Repeat the command to continue on
the nodes whose run is not complete. If another Tare is measuring on a node's host, the task waits for it, for at most a day.
Tare needs root on the nodes: as another user it calls sudo -n there.

With --slurm it submits one job for each node of a partition, and returns. Each job gets a whole node. All nodes must have the
fleet's folder at the same path. A requeued job continues where it stopped. --partition and --constraint choose nodes. Options
after -- go to sbatch.

With --hosts it connects to each machine in a list by ssh, and returns when all runs have ended. The ssh keys must work without
a prompt. It copies the program to /var/lib/tare-fleet on each machine, and removes it at the end. Ctrl-C stops the runs cleanly.

--max-hosts takes a random sample of the nodes. --plan only prints what it would do. The other flags are those of tare run.`,
		Example: `  tare fleet run quick --slurm --plan
  tare fleet run quick --slurm --out F
  tare fleet run ./mine.yaml --slurm --partition compute --constraint icelake --max-hosts 50 --time-budget 30m
  tare fleet run quick --slurm -- --account=physics --time=02:00:00
  tare fleet run quick --hosts machines.txt --out F`,
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
	f.Lookup("out").Usage = "folder of the fleet; if it exists, the nodes that have not finished continue (default tare-fleet-STUDY-TIME)"
	f.Lookup("plan").Usage = "print the script and the jobs; submit nothing"
	for _, name := range notOnNodes {
		f.Lookup(name).Hidden = true
	}
	f.BoolVar(&l.slurm, "slurm", false, "submit jobs with sbatch to the Slurm cluster that this machine is configured for")
	f.StringVar(&l.hosts, "hosts", "", "connect by ssh to the machines in this `FILE`: one [USER@]HOST[:PORT] a line; # begins a comment")
	f.StringVar(&l.cluster.Partition, "partition", "", "Slurm partition whose nodes run the study (default: the cluster's)")
	f.StringSliceVar(&l.cluster.Features, "constraint", nil, "use only nodes with these Slurm features: `LIST`")
	f.IntVar(&l.most, "max-hosts", 0, "use a random sample of at most this many nodes (default: all)")
	return c
}

// notOnNodes are flags of tare run that have no meaning for the run of a node.
var notOnNodes = []string{"format", "host", "silent", "compare", "until", "quiet"}

// ownFlags are the flags of fleet run that the nodes do not get.
var ownFlags = append([]string{"out", "plan", "slurm", "hosts", "partition", "constraint", "max-hosts"}, notOnNodes...)

func (l *launching) check(c *cobra.Command) error {
	if err := l.running.check(c); err != nil {
		return err
	}
	if err := notEmpty(c, "hosts", "partition", "constraint"); err != nil {
		return err
	}
	for _, name := range notOnNodes {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: this flag of tare run is not allowed for a fleet", name)
		}
	}
	if l.slurm == (l.hosts != "") {
		return errors.New("--slurm, --hosts: exactly one of them must be given")
	}
	if !l.slurm && (l.cluster.Partition != "" || len(l.cluster.Features) > 0 || len(l.options) > 0) {
		return errors.New("--partition, --constraint and options after -- are allowed only with --slurm")
	}
	if l.most < 0 || c.Flags().Changed("max-hosts") && l.most == 0 {
		return fmt.Errorf("--max-hosts %d: must be at least 1", l.most)
	}
	if err := l.cluster.CheckOptions(l.options); err != nil {
		return err
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		l.continues = l.continues || !slices.Contains([]string{"out", "plan", "slurm", "hosts"}, f.Name)
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

// How Tare reaches the nodes of a fleet (notebook.Fleet.By).
const (
	bySlurm = "slurm"
	bySSH   = "ssh"
)

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
	f, err := notebook.ReadFleet(dir)
	if err == nil {
		return l.resume(ctx, dir, f, spec.Name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f = &notebook.Fleet{Tare: version(), ID: "tare-" + randomID(), Study: spec.Name, Created: time.Now(), By: bySSH, Run: l.given, With: l.options}
	if l.slurm {
		f.By = bySlurm
		if err := l.cluster.CheckFolder(dir); err != nil {
			return err
		}
	}
	if err := l.choose(ctx, f); err != nil {
		return err
	}
	source, err := l.source(spec, study)
	if err != nil {
		return err
	}
	if source != nil {
		f.File = fleet.StudyFile
	}
	if l.plan {
		return l.show(os.Stdout, dir, f)
	}
	if err := fleet.Make(dir, f, source); err != nil {
		return err
	}
	return l.begin(ctx, dir, f, f.Nodes)
}

// choose names the fleet's nodes.
func (l *launching) choose(ctx context.Context, f *notebook.Fleet) error {
	var nodes []fleet.Node
	address := map[string]string{}
	if l.slurm {
		var err error
		if nodes, err = l.cluster.Nodes(ctx); err != nil {
			return err
		}
	} else {
		file, err := durable.OpenToRead(l.hosts)
		if err != nil {
			return fmt.Errorf("--hosts: %w", err)
		}
		machines, names, err := fleet.Hosts(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("--hosts: %s: %w", l.hosts, err)
		}
		for i, name := range names {
			nodes = append(nodes, fleet.Node{Name: name})
			address[name] = string(machines[i])
		}
	}
	chosen, left := fleet.Choose(nodes, l.most)
	tellLeftOut(os.Stderr, left)
	if len(chosen) == 0 {
		return errors.New("no node can be used; the lines above say why")
	}
	for _, n := range chosen {
		f.Nodes = append(f.Nodes, n.Name)
		if !l.slurm {
			f.With = append(f.With, address[n.Name])
		}
	}
	return nil
}

// source is the text of a user's study file; nil: the study ships with Tare. It fails if the file names other files by relative paths,
// because the nodes do not get them.
func (l *launching) source(spec *studyfile.Spec, study string) ([]byte, error) {
	if slices.Contains(studyfile.Shipped(studies.FS), study) {
		return nil, nil
	}
	alone, err := studyfile.Parse(study, []byte(spec.Source), os.DevNull, session.Known)
	if err != nil {
		return nil, err
	}
	if _, err := checkStudy(alone); err != nil {
		return nil, fmt.Errorf("the nodes get only the study file: name other files by absolute paths that exist on all nodes: %w", err)
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
		return fmt.Errorf("%s exists and continues with the flags of its first command: leave out these flags, or name another folder with --out", dir)
	}
	if by := map[bool]string{true: bySlurm, false: bySSH}[l.slurm]; f.By != by {
		return fmt.Errorf("%s is a fleet started with %s, not %s: name another folder with --out", dir, plain(f.By), by)
	}
	jobs, err := jobsOf(ctx, dir, f)
	if err != nil {
		return err
	}
	if jobs == nil {
		return fmt.Errorf("another tare fleet run is using %s; wait for it or stop it", dir)
	}
	var open []string
	for _, s := range fleet.Statuses(dir, f, jobs) {
		if s.Open() {
			open = append(open, s.Node)
		}
	}
	if len(open) == 0 {
		fmt.Printf("%s: nothing to start on %s: each has finished or has a task.\n", dir, words.Count(len(f.Nodes), "node"))
		return nil
	}
	if l.plan {
		f.Nodes = open
		return l.show(os.Stdout, dir, f)
	}
	return l.begin(ctx, dir, f, open)
}

// jobsOf are the tasks of a fleet that have not ended, by node; nil: a `tare fleet run` is at work, and only the tasks themselves know.
func jobsOf(ctx context.Context, dir string, f *notebook.Fleet) (map[string]fleet.Job, error) {
	if f.By == bySlurm {
		return fleet.Slurm{}.Jobs(ctx, f)
	}
	lock, err := fleet.Claim(dir)
	if errors.As(err, new(*durable.HeldError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]fleet.Job{}, lock.Close()
}

// begin starts tasks on nodes.
func (l *launching) begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	if f.By == bySSH {
		return l.carry(ctx, dir, f, nodes)
	}
	started := fleet.Begin(ctx, l.cluster, dir, f, nodes, func(node string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "tare: %s: %s\n", node, plain(short(err.Error())))
		}
	})
	if err := ctx.Err(); err != nil {
		fmt.Fprintf(os.Stderr, "tare: interrupted; %s submitted; the same command submits the rest, and tare fleet cancel %s cancels the submitted jobs\n", words.Count(started, "job"), dir)
		return exit(interrupted)
	}
	if started == 0 {
		return errors.New("no job was submitted")
	}
	fmt.Printf("%s submitted. Progress: tare fleet status %s\nResults, including unfinished runs: tare summary %[2]s\n", words.Count(started, "job"), words.Shell(dir))
	if started < len(nodes) {
		return fmt.Errorf("%s got no job", words.Count(len(nodes)-started, "node"))
	}
	return nil
}

// carry runs the tasks of machines and waits for their end.
func (l *launching) carry(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	lock, err := fleet.Claim(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // the lock ends with it
	fmt.Fprintf(os.Stderr, "Measuring on %s. Progress, in another terminal: tare fleet status %s\n", words.Count(len(nodes), "machine"), words.Shell(dir))
	var say sync.Mutex
	var all sync.WaitGroup
	failed := 0
	for _, node := range nodes {
		all.Go(func() {
			err := fleet.Carry(ctx, fleet.SSH(f.With[slices.Index(f.Nodes, node)]), dir, f, node)
			say.Lock()
			defer say.Unlock()
			switch {
			case ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())):
				fmt.Fprintf(os.Stderr, "%s: stopped\n", node)
			case err != nil:
				failed++
				fmt.Fprintf(os.Stderr, "tare: %s: %s\n", node, plain(short(err.Error())))
			default:
				fmt.Fprintf(os.Stderr, "%s: done\n", node)
			}
		})
	}
	all.Wait()
	fmt.Printf("Results: tare summary %s\n", words.Shell(dir))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "tare: interrupted; the same command continues")
		return exit(interrupted)
	case failed > 0:
		return fmt.Errorf("%s failed; the same command continues with them; the logs are in %s", words.Count(failed, "machine"), filepath.Join(dir, "logs"))
	}
	return nil
}

// show prints what would be submitted.
func (l *launching) show(w io.Writer, dir string, f *notebook.Fleet) error {
	if f.By == bySSH {
		fmt.Fprintf(w, "%s by ssh, all at the same time; the results go to %s:\n", words.Count(len(f.Nodes), "machine"), dir)
		for _, address := range f.With {
			fmt.Fprintf(w, "  ssh://%s\n", address)
		}
		fmt.Fprintf(w, "\nOn each: tare run %s\n", strings.Join(runArgs(fleet.There(f), "NODE", f), " "))
		return nil
	}
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
	if f.File != "" {
		study = filepath.Join(dir, f.File)
	}
	return slices.Concat(f.Run, []string{"--out=" + notebook.NodeResults(dir, node), "--", study})
}
