package main

import (
	"bytes"
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

// launching holds the flags of fleet run.
type launching struct {
	running
	slurm      bool
	kubernetes bool
	hosts      string // file with machines
	cluster    fleet.Slurm
	pods       podFlags
	by         reach
	most       int
	given      []string // flags of tare run
	options    []string // of sbatch
}

// podFlags are those of --kubernetes.
type podFlags struct {
	context, namespace, image, selector string
	tolerations                         []string
}

func fleetRunCommand() *cobra.Command {
	var l launching
	c := &cobra.Command{
		Use:   "run STUDY|FILE --slurm|--kubernetes|--hosts FILE [flags] [-- OPTION…]",
		Short: "Run a study on each node of a Slurm or Kubernetes cluster, or on each machine in a list",
		Long: `Runs the study on each node, and collects a results folder from each in the fleet's folder. Repeat the command to continue on
the nodes whose run is not complete. If another Tare is measuring on a node's host, the task waits for it, for at most a day.
Tare needs root on the nodes: as another user it calls sudo -n there.

With --slurm it submits one job for each node of a partition, and returns. Each job gets a whole node. All nodes must have the
fleet's folder at the same path. A requeued job continues where it stopped. --partition and --constraint choose nodes. Options
after -- go to sbatch.

With --kubernetes it starts a privileged pod on each node with your kubectl, and returns when it has fetched all results. The
pod enters its node: bare metal is the node, and the node's containerd is an engine. Each node has a taint until its results
are fetched. After Ctrl-C the tasks continue, and the same command fetches their results. --node-selector and --toleration
choose nodes.

With --hosts it connects to each machine in a list by ssh, and returns when all runs have ended. The ssh keys must work without
a prompt. It copies the program to /var/lib/tare-fleet on each machine, and removes it at the end. Ctrl-C stops the runs cleanly.

--max-hosts takes a random sample of the nodes. --plan only prints what it would do. The other flags are those of tare run.`,
		Example: `  tare fleet run quick --slurm --plan
  tare fleet run quick --slurm --out F
  tare fleet run ./mine.yaml --slurm --partition compute --constraint icelake --max-hosts 50 --time-budget 30m
  tare fleet run quick --slurm -- --account=physics --time=02:00:00
  tare fleet run quick --kubernetes --out F
  tare fleet run quick --kubernetes --context prod --node-selector pool=batch --toleration batch=only:NoSchedule
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
			return l.run(c.Context(), args[0], c.Flags().Changed("seed"))
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
	f.BoolVar(&l.kubernetes, "kubernetes", false, "start a pod on each node of a Kubernetes cluster with kubectl")
	f.StringVar(&l.pods.context, "context", "", "context of your kubeconfig (default: the current one)")
	f.StringVar(&l.pods.namespace, "namespace", "", "existing namespace that allows privileged pods (default: a new one, deleted at the end)")
	f.StringVar(&l.pods.image, "image", fleet.PodImage, "image of the pods, with a shell and the usual programs")
	f.StringVar(&l.pods.selector, "node-selector", "", "use only nodes with these Kubernetes labels: `KEY=VALUE,…`")
	f.StringSliceVar(&l.pods.tolerations, "toleration", nil, "use nodes with these taints too: `KEY[=VALUE][:EFFECT],…`")
	f.StringVar(&l.hosts, "hosts", "", "connect by ssh to the machines in this `FILE`: one [USER@]HOST[:PORT] a line; # begins a comment")
	f.StringVar(&l.cluster.Partition, "partition", "", "Slurm partition whose nodes run the study (default: the cluster's)")
	f.StringSliceVar(&l.cluster.Features, "constraint", nil, "use only nodes with these Slurm features: `LIST`")
	f.IntVar(&l.most, "max-hosts", 0, "use a random sample of at most this many nodes (default: all)")
	return c
}

// notOnNodes are flags of tare run that have no meaning for the run of a node.
var notOnNodes = []string{"format", "host", "silent", "compare", "until", "quiet"}

// ownFlags are the flags of fleet run that the nodes do not get.
var ownFlags = slices.Concat([]string{"out", "plan", "slurm", "kubernetes", "hosts", "partition", "constraint", "max-hosts"}, podFlagNames, notOnNodes)

var podFlagNames = []string{"context", "namespace", "image", "node-selector", "toleration"}

func (l *launching) check(c *cobra.Command) error {
	if err := l.running.check(c); err != nil {
		return err
	}
	if err := notEmpty(c, append(podFlagNames, "hosts", "partition", "constraint")...); err != nil {
		return err
	}
	if c.Flags().Changed("constraint") && len(l.cluster.Features) == 0 {
		return errors.New("--constraint is empty: is a variable unset?")
	}
	for _, name := range l.cluster.Features {
		if strings.ContainsAny(name, "&|*[]()!,") {
			return fmt.Errorf("--constraint %s: must be a LIST of features, all of which a node must have; the operators of sbatch are not allowed", name)
		}
	}
	for _, name := range notOnNodes {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: this flag of tare run is not allowed for a fleet", name)
		}
	}
	if l.most < 0 || c.Flags().Changed("max-hosts") && l.most == 0 {
		return fmt.Errorf("--max-hosts %d: must be at least 1", l.most)
	}
	if err := l.reach(c); err != nil {
		return err
	}
	c.Flags().Visit(func(f *pflag.Flag) {
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
	return nil
}

// reach sets what reaches the nodes.
func (l *launching) reach(c *cobra.Command) error {
	named := 0
	for _, name := range []string{"slurm", "kubernetes", "hosts"} {
		if c.Flags().Changed(name) {
			named++
		}
	}
	if named != 1 || !l.slurm && !l.kubernetes && l.hosts == "" {
		return errors.New("--slurm, --kubernetes or --hosts: exactly one of them must be given")
	}
	if !l.slurm && (l.cluster.Partition != "" || len(l.cluster.Features) > 0 || len(l.options) > 0) {
		return errors.New("--partition, --constraint and options after -- are allowed only with --slurm")
	}
	switch {
	case l.slurm:
		l.by = bySlurm{l.cluster, l.options}
		if err := l.cluster.CheckOptions(l.options); err != nil {
			return err
		}
	case l.kubernetes:
		by := byKubernetes{usual: true}
		for _, name := range podFlagNames {
			values := []string{c.Flag(name).Value.String()}
			by.usual = by.usual && !c.Flags().Changed(name)
			if name == "toleration" {
				values = l.pods.tolerations
			} else if !c.Flags().Changed(name) && name != "image" {
				continue
			}
			for _, v := range values {
				if err := by.cluster.Set(name, v); err != nil {
					return fmt.Errorf("--%s: %w", name, err)
				}
				by.options = append(by.options, "--"+name+"="+v)
			}
		}
		l.by = by
	default:
		l.by = &bySSH{file: l.hosts}
	}
	for _, name := range podFlagNames {
		if !l.kubernetes && c.Flags().Changed(name) {
			return fmt.Errorf("--%s: allowed only with --kubernetes", name)
		}
	}
	return nil
}

// run makes the fleet's folder, or continues with it, and starts the tasks.
func (l *launching) run(ctx context.Context, study string, seedChosen bool) error {
	spec, err := l.study(study, "")
	if err != nil {
		return err
	}
	if err := l.asks(spec, seedChosen); err != nil {
		return err
	}
	dir, err := filepath.Abs(cmp.Or(l.out, fmt.Sprintf("tare-fleet-%s-%s", spec.Name, time.Now().Format("20060102-150405"))))
	if err != nil {
		return err
	}
	if !l.plan { // two of them would start each task twice
		release, err := hold(dir)
		if err != nil {
			return err
		}
		defer release()
	}
	source, err := l.source(spec, study)
	if err != nil {
		return err
	}
	f, err := notebook.ReadFleet(dir)
	if err == nil {
		return l.resume(ctx, dir, f, spec.Name, source)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f = &notebook.Fleet{Tare: version(), ID: "tare-" + randomID(), Study: spec.Name, Created: time.Now(), By: l.by.name(), Run: l.given}
	nodes, err := l.by.nodes(ctx, dir)
	if err != nil {
		return err
	}
	chosen, left := fleet.Choose(nodes, l.most)
	tellLeftOut(os.Stderr, left)
	if len(chosen) == 0 {
		return errors.New("no node can be used; the lines above say why")
	}
	for _, n := range chosen {
		f.Nodes = append(f.Nodes, n.Name)
	}
	if err := l.by.prepare(ctx, f); err != nil {
		return err
	}
	if source != nil {
		f.File = fleet.StudyFile
	}
	if l.plan {
		return l.by.show(os.Stdout, dir, f)
	}
	if err := fleet.Make(dir, f, source); err != nil {
		return err
	}
	return l.by.begin(ctx, dir, f, f.Nodes)
}

// asks returns an error for each mistake in the flags or the study that would show on every node.
func (l *launching) asks(spec *studyfile.Spec, seedChosen bool) error {
	if len(l.kernels) > 0 { // files of the nodes, and --only may name them
		return nil
	}
	here := l.running
	here.input = "" // a file of the nodes
	_, _, err := here.ask(spec, seedChosen)
	return err
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
func (l *launching) resume(ctx context.Context, dir string, f *notebook.Fleet, study string, source []byte) error {
	if err := l.same(dir, f, study, source); err != nil {
		return fmt.Errorf("%w; name another folder with --out", err)
	}
	var err error
	if l.by, err = reachOf(f); err != nil {
		return err
	}
	jobs, err := l.by.jobs(ctx, dir, f)
	if err != nil {
		return err
	}
	if jobs == nil && l.plan {
		return errAtWork(dir)
	}
	if jobs == nil { // this process has the lock: no other one is at work
		jobs = map[string]fleet.Job{}
	}
	var open []string
	for _, s := range fleet.Statuses(dir, f, jobs) {
		if s.Open() {
			open = append(open, s.Node)
		}
	}
	if len(open) == 0 && (l.plan || !l.by.collects()) {
		fmt.Printf("%s: nothing to start on %s: each has finished or has a task.\n", dir, words.Count(len(f.Nodes), "node"))
		return nil
	}
	if l.plan {
		f.Nodes = open
		return l.by.show(os.Stdout, dir, f)
	}
	return l.by.begin(ctx, dir, f, open)
}

// same says why an existing fleet is not what the command asks for. The command may leave out the flags.
func (l *launching) same(dir string, f *notebook.Fleet, study string, source []byte) error {
	if f.Study != study {
		return fmt.Errorf("%s is a fleet of the study %s, not %s", dir, plain(f.Study), study)
	}
	if f.By != l.by.name() {
		return fmt.Errorf("%s is a fleet by %s, not %s", dir, plain(f.By), l.by.name())
	}
	var old []byte
	if f.File != "" {
		var err error
		if old, err = os.ReadFile(filepath.Join(dir, f.File)); err != nil {
			return err
		}
	}
	if !bytes.Equal(old, source) {
		return fmt.Errorf("the study file of %s is another one than yours", dir)
	}
	for _, both := range [][2][]string{{l.given, f.Run}, {l.by.given(), f.With}} {
		given, was := both[0], both[1]
		if len(given) > 0 && !slices.Equal(slices.Sorted(slices.Values(given)), slices.Sorted(slices.Values(was))) {
			return fmt.Errorf("%s was made with other flags (%s): write these or none", dir, plain(cmp.Or(words.Shell(was...), "none")))
		}
	}
	return nil
}

// hold takes the lock of a fleet's folder, which it makes if it is missing. release gives the lock back, and removes a folder that was made and has no fleet.
func hold(dir string) (release func(), err error) {
	_, err = os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the fleet's folder: %w", err)
	}
	lock, err := claim(dir)
	if err != nil {
		return nil, err
	}
	return func() {
		if _, err := os.Stat(filepath.Join(dir, notebook.FleetFile)); made && errors.Is(err, fs.ErrNotExist) {
			os.Remove(lock.Name()) // what stays here is harmless
			os.Remove(dir)
		}
		lock.Close() // which ends the lock
	}, nil
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
