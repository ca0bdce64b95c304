package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/desk/words"
	"tare/lab/fleet"
	"tare/notebook"
	"tare/notebook/durable"
)

// reach is what reaches the nodes of a fleet.
type reach interface {
	// name is that in notebook.Fleet.By.
	name() string
	// nodes are all nodes, with what is against each.
	nodes(ctx context.Context, dir string) ([]fleet.Node, error)
	// prepare checks what a fleet needs, and notes in it what later commands need to know. It changes nothing else.
	prepare(ctx context.Context, f *notebook.Fleet) error
	// show prints what begin would do.
	show(w io.Writer, dir string, f *notebook.Fleet) error
	// begin starts the tasks of nodes.
	begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error
	// given are the options of the command, as notebook.Fleet.With has them; nil: none.
	given() []string
	// collects says whether begin has work with nodes that have a task already.
	collects() bool
	// jobs are the tasks that have not ended, by node; nil: a `tare fleet run` is at work, and only the tasks themselves know.
	jobs(ctx context.Context, dir string, f *notebook.Fleet) (map[string]fleet.Job, error)
	// cancel ends the tasks, and waits for their end.
	cancel(ctx context.Context, dir string, f *notebook.Fleet) error
}

// reachOf is what reaches the nodes of a fleet that exists.
func reachOf(f *notebook.Fleet) (reach, error) {
	switch f.By {
	case bySlurm{}.name():
		return bySlurm{}, nil
	case (&bySSH{}).name():
		return &bySSH{}, nil
	case byKubernetes{}.name():
		k, err := fleet.OnKubernetes(f)
		return byKubernetes{cluster: k}, err
	}
	return nil, fmt.Errorf(`%s: "by" is %q; this Tare knows slurm, kubernetes and ssh`, notebook.FleetFile, f.By)
}

func errAtWork(dir string) error {
	return fmt.Errorf("another tare fleet run is using %s; wait for it or stop it", dir)
}

// claim takes the lock of a fleet's folder. The lock ends when the file is closed.
func claim(dir string) (*os.File, error) {
	lock, err := fleet.Claim(dir)
	if errors.As(err, new(*durable.HeldError)) {
		err = errAtWork(dir)
	}
	return lock, err
}

// bySlurm submits jobs to a Slurm cluster.
type bySlurm struct {
	cluster fleet.Slurm
	options []string // of sbatch
}

func (bySlurm) name() string   { return "slurm" }
func (bySlurm) collects() bool { return false }

func (s bySlurm) nodes(ctx context.Context, dir string) ([]fleet.Node, error) {
	if err := s.cluster.CheckFolder(dir); err != nil {
		return nil, err
	}
	return s.cluster.Nodes(ctx)
}

func (s bySlurm) given() (all []string) {
	if s.cluster.Partition != "" {
		all = append(all, "--partition="+s.cluster.Partition)
	}
	return append(all, s.options...)
}

func (s bySlurm) prepare(_ context.Context, f *notebook.Fleet) error {
	f.With = s.given()
	return nil
}

func (s bySlurm) show(w io.Writer, dir string, f *notebook.Fleet) error {
	const most = 3
	fmt.Fprintf(w, "%s in %s, one job each. The script of a job:\n\n%s\n", words.Count(len(f.Nodes), "node"), dir, s.cluster.Script())
	for _, node := range f.Nodes[:min(most, len(f.Nodes))] {
		fmt.Fprintln(w, words.Shell(s.cluster.Plan(dir, f, node)...))
	}
	if more := len(f.Nodes) - most; more > 0 {
		fmt.Fprintf(w, "… and %d more, for %s\n", more, strings.Join(f.Nodes[most:min(most+10, len(f.Nodes))], ", ")+map[bool]string{true: ", …"}[more > 10])
	}
	return onEach(w, dir, f)
}

// onEach prints what each node runs.
func onEach(w io.Writer, dir string, f *notebook.Fleet) error {
	_, err := fmt.Fprintf(w, "\nOn each node: %s\n", words.Shell(append([]string{"tare", "run"}, runArgs(dir, "NODE", f)...)...))
	return err
}

func (s bySlurm) begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	if err := s.cluster.CheckOptions(f.With); err != nil {
		return fmt.Errorf(`%s: "with": %w`, notebook.FleetFile, err)
	}
	started := 0
	for _, node := range nodes {
		if ctx.Err() != nil {
			break
		}
		if err := s.cluster.Start(ctx, dir, f, node); err != nil {
			fmt.Fprintf(os.Stderr, "tare: %s: %s\n", node, plain(short(err.Error())))
			continue
		}
		started++
	}
	if ctx.Err() != nil {
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

func (s bySlurm) jobs(ctx context.Context, _ string, f *notebook.Fleet) (map[string]fleet.Job, error) {
	return s.cluster.Jobs(ctx, f)
}

func (s bySlurm) cancel(ctx context.Context, _ string, f *notebook.Fleet) error {
	const most = 2 * time.Minute
	jobs, err := s.cluster.Jobs(ctx, f)
	if err != nil {
		return err
	}
	all := len(jobs)
	if all == 0 {
		fmt.Println("The fleet has no jobs.")
		return nil
	}
	if err := s.cluster.Cancel(ctx, f); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for len(jobs) > 0 {
		select {
		case <-bounded.Done():
			return fmt.Errorf("%s cancelled, but %d of them have not ended yet; tare fleet status shows them", words.Count(all, "job"), len(jobs))
		case <-time.After(time.Second): // the scheduler sends no notice
		}
		if jobs, err = s.cluster.Jobs(bounded, f); err != nil {
			return err
		}
	}
	fmt.Printf("%s ended.\n", words.Count(all, "job"))
	return nil
}

// bySSH reaches the machines of a list, each by a connection for as long as its run takes.
type bySSH struct {
	file    string            // the list
	address map[string]string // by node
}

func (*bySSH) name() string   { return "ssh" }
func (*bySSH) collects() bool { return false }

// given: a list that has become longer changes nothing in a fleet that exists.
func (*bySSH) given() []string { return nil }

func (s *bySSH) nodes(context.Context, string) (all []fleet.Node, err error) {
	file, err := durable.OpenToRead(s.file)
	if err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	machines, names, err := fleet.Hosts(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("--hosts: %s: %w", s.file, err)
	}
	s.address = map[string]string{}
	for i, name := range names {
		all = append(all, fleet.Node{Name: name})
		s.address[name] = string(machines[i])
	}
	return all, nil
}

func (s *bySSH) prepare(_ context.Context, f *notebook.Fleet) error {
	for _, n := range f.Nodes {
		f.With = append(f.With, s.address[n])
	}
	return nil
}

func (*bySSH) show(w io.Writer, dir string, f *notebook.Fleet) error {
	fmt.Fprintf(w, "%s by ssh, all at the same time; the results go to %s:\n", words.Count(len(f.Nodes), "machine"), dir)
	for _, node := range f.Nodes {
		fmt.Fprintf(w, "  %s\n", node)
	}
	return onEach(w, filepath.Join(fleet.There(f), "NODE"), f)
}

func (*bySSH) begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	machines, names, err := fleet.Hosts(strings.NewReader(strings.Join(f.With, "\n")))
	if err != nil || !slices.Equal(names, f.Nodes) {
		return errors.Join(fmt.Errorf(`%s: "with" must have the address of each node`, notebook.FleetFile), err)
	}
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(os.Stderr, "tare: stopping the runs and bringing their results back; Ctrl-C again leaves them there, and the same command fetches them")
		signal.Reset(ending...)
	})()
	fmt.Fprintf(os.Stderr, "Measuring on %s. Progress, in another terminal: tare fleet status %s\n", words.Count(len(nodes), "machine"), words.Shell(dir))
	var say sync.Mutex
	var all sync.WaitGroup
	failed := 0
	for _, node := range nodes {
		all.Go(func() {
			err := fleet.Carry(ctx, machines[slices.Index(names, node)], dir, f, node)
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

func (*bySSH) jobs(_ context.Context, dir string, _ *notebook.Fleet) (map[string]fleet.Job, error) {
	held, err := fleet.Held(dir)
	if held || err != nil {
		return nil, err
	}
	return map[string]fleet.Job{}, nil
}

func (*bySSH) cancel(_ context.Context, dir string, _ *notebook.Fleet) error {
	if held, err := fleet.Held(dir); err != nil {
		return err
	} else if !held {
		fmt.Println("No tare fleet run works with the fleet now.")
		return nil
	}
	return errors.New("the tasks of this fleet end with its `tare fleet run`: interrupt that with Ctrl-C")
}

// byKubernetes starts pods in a Kubernetes cluster.
type byKubernetes struct {
	cluster fleet.Kubernetes
	options []string // as notebook.Fleet.With has them
	usual   bool     // none was given
}

func (byKubernetes) name() string   { return "kubernetes" }
func (byKubernetes) collects() bool { return true }

func (k byKubernetes) given() []string {
	if k.usual {
		return nil
	}
	return k.options
}

func (k byKubernetes) nodes(ctx context.Context, _ string) ([]fleet.Node, error) {
	return k.cluster.Nodes(ctx)
}

func (k byKubernetes) prepare(ctx context.Context, f *notebook.Fleet) error {
	f.With = k.options
	return k.cluster.Check(ctx, f, f.Nodes[0])
}

func (k byKubernetes) show(w io.Writer, dir string, f *notebook.Fleet) error {
	text, err := k.cluster.Plan(f)
	if err != nil {
		return err
	}
	const most = 10
	names := strings.Join(f.Nodes[:min(most, len(f.Nodes))], ", ")
	if more := len(f.Nodes) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(w, "%s, a pod on each: %s. The results come to %s.\n\n%s", words.Count(len(f.Nodes), "node"), names, dir, text)
	return onEach(w, fleet.There(f), f)
}

func (k byKubernetes) begin(ctx context.Context, dir string, f *notebook.Fleet, nodes []string) error {
	if len(nodes) > 0 {
		fmt.Fprintf(os.Stderr, "Measuring on %s. Progress, in another terminal: tare fleet status %s\n", words.Count(len(nodes), "node"), words.Shell(dir))
	}
	err := k.cluster.Run(ctx, dir, f, nodes, tellStep)
	if ctx.Err() != nil {
		at := words.Shell(dir)
		fmt.Fprintf(os.Stderr, "tare: interrupted; the tasks go on; the same command with --out %s collects their results, and tare fleet cancel %[1]s ends them\n", at)
		return exit(interrupted)
	}
	unfinished := 0
	for _, s := range fleet.Statuses(dir, f, map[string]fleet.Job{}) {
		if s.State != fleet.Done {
			unfinished++
		}
	}
	fmt.Printf("%d of %s done. Results: tare summary %s\n", len(f.Nodes)-unfinished, words.Count(len(f.Nodes), "node"), words.Shell(dir))
	if err == nil && unfinished > 0 {
		err = fmt.Errorf("%s not done; tare fleet status says why, and the same command continues", words.Count(unfinished, "node"))
	}
	return err
}

// tellStep prints what happens to a node.
func tellStep(node string, step fleet.Step, said string) {
	text := map[fleet.Step]string{
		fleet.Waits: "waits: " + said, fleet.Sent: "has Tare and the study", fleet.Measures: "measures", fleet.Replaced: "its task was killed (" + said + ") and starts again",
		fleet.Collected: "its results are here", fleet.Freed: "is free again", fleet.Trouble: said,
	}[step]
	if node == "" {
		node = "the cluster"
	}
	if step == fleet.Trouble {
		node = "tare: " + node
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", node, plain(short(text)))
}

func (k byKubernetes) jobs(ctx context.Context, _ string, f *notebook.Fleet) (map[string]fleet.Job, error) {
	return k.cluster.Jobs(ctx, f)
}

func (k byKubernetes) cancel(ctx context.Context, dir string, f *notebook.Fleet) error {
	lock, err := claim(dir)
	if err != nil {
		return fmt.Errorf("%w: interrupt that with Ctrl-C first", err)
	}
	defer lock.Close()
	held, err := k.cluster.Cancel(ctx, dir, f, tellStep)
	if err != nil {
		return err
	}
	if held == 0 {
		fmt.Println("The fleet has no jobs.")
		return nil
	}
	fmt.Printf("%s free again; the results so far are here.\n", words.Count(held, "node"))
	return nil
}
