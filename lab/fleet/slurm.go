//go:build linux

package fleet

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tare/notebook"
	"tare/notebook/durable"
)

// Slurm is the Slurm cluster of this machine's configuration. Each node gets a job that only it can run, because a job array does not give
// each task a node of its own.
type Slurm struct {
	Partition string   // empty: the default one
	Features  []string // that nodes must have
}

// slurmScript is the batch script of each task. It runs Tare as a job step, with all of the node, so that signals for the job reach it.
//
//go:embed slurm.sh
var slurmScript []byte

// options are those of sbatch that users may set. Others choose nodes or files, or change how a job begins.
var options = []string{"account", "acctg-freq", "begin", "comment", "core-spec", "deadline", "dependency", "gres", "hint", "licenses", "mail-type", "mail-user", "nice",
	"partition", "priority", "qos", "reservation", "signal", "time", "wckey"}

// short are their short forms.
var short = map[string]string{"A": "account", "p": "partition", "q": "qos", "t": "time", "L": "licenses"}

// CheckOptions says which option of sbatch is not for users to set. Each is one word: --NAME=VALUE, or a short form with its value.
func (Slurm) CheckOptions(given []string) error {
	for _, o := range given {
		name, value, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		if !strings.HasPrefix(o, "--") && len(o) > 2 && o[0] == '-' {
			name, value = short[o[1:2]], o[2:]
		}
		if !strings.HasPrefix(o, "-") || value == "" || !slices.Contains(options, name) {
			return fmt.Errorf("-- %s: must be one of --%s of sbatch, with its value after an equals sign; --constraint and --max-hosts of `tare fleet run` choose nodes", o, strings.Join(options, ", --"))
		}
	}
	return nil
}

// CheckFolder says why Slurm's jobs cannot use a fleet's folder: sbatch reads % and \ in the name of a job's log in its own way.
func (Slurm) CheckFolder(dir string) error {
	if strings.ContainsAny(dir, "%\\") {
		return fmt.Errorf(`%s: the path of a fleet's folder must be without %% and \, which sbatch replaces: name another with --out`, dir)
	}
	return nil
}

// Nodes are the nodes of the partition, with what is against each.
func (s Slurm) Nodes(ctx context.Context) ([]Node, error) {
	text, err := ask(ctx, "scontrol", "--oneliner", "show", "nodes")
	if err != nil {
		return nil, err
	}
	partition := s.Partition
	if partition == "" {
		if partition, err = defaultPartition(ctx); err != nil {
			return nil, err
		}
	}
	all := parseNodes(text, partition, s.Features)
	if len(all) == 0 {
		return nil, fmt.Errorf("the partition %q has no nodes; `sinfo` lists the partitions", partition)
	}
	return all, nil
}

// defaultPartition is the one that jobs get without --partition.
func defaultPartition(ctx context.Context) (string, error) {
	text, err := ask(ctx, "sinfo", "--noheader", "--format=%P")
	if err != nil {
		return "", err
	}
	for name := range strings.FieldsSeq(text) {
		if name, is := strings.CutSuffix(name, "*"); is {
			return name, nil
		}
	}
	return "", fmt.Errorf("the cluster has no default partition: name one with --partition")
}

// parseNodes reads what scontrol says of nodes, one on each line, as NAME=VALUE pairs. It returns those of the partition.
func parseNodes(text, partition string, features []string) (all []Node) {
	for line := range strings.Lines(text) {
		is := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			// The first value counts: the reason, which comes last, may contain anything.
			if name, value, pair := strings.Cut(word, "="); pair {
				if _, seen := is[name]; !seen {
					is[name] = value
				}
			}
		}
		if is["NodeName"] == "" || !slices.Contains(strings.Split(is["Partitions"], ","), partition) {
			continue
		}
		n := Node{Name: is["NodeName"], Arch: is["Arch"], Why: against(is["State"])}
		has := strings.Split(is["ActiveFeatures"], ",")
		for _, f := range features {
			if n.Why == "" && !slices.Contains(has, f) {
				n.Why = "it lacks the feature " + f
			}
		}
		all = append(all, n)
	}
	return all
}

// against says why a node in a state, such as IDLE+DRAIN or DOWN*, runs no job now.
func against(state string) string {
	base, flags, _ := strings.Cut(state, "+")
	why := "its state is " + state
	switch strings.TrimRight(base, "*~#!%$@^-") {
	case "IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED":
	default:
		return why
	}
	if strings.Contains(base, "*") { // it does not answer
		return why
	}
	for flag := range strings.SplitSeq(flags, "+") {
		switch strings.TrimRight(flag, "*~#!%$@^-") {
		case "DRAIN", "FAIL", "MAINTENANCE", "NOT_RESPONDING", "INVALID_REG", "POWERING_DOWN":
			return why
		}
	}
	return ""
}

// command is the call of sbatch for a node.
func (s Slurm) command(dir string, f *notebook.Fleet, node string) []string {
	args := []string{"--parsable", "--job-name=" + f.ID, "--nodes=1", "--nodelist=" + node, "--exclusive", "--mem=0", "--requeue", "--open-mode=append",
		"--output=" + Log(dir, node), "--chdir=/"}
	return slices.Concat(args, f.With, []string{filepath.Join(dir, taskScript), dir, node})
}

// Start submits the job of a node; dir is the fleet's folder, an absolute path.
func (s Slurm) Start(ctx context.Context, dir string, f *notebook.Fleet, node string) error {
	if err := durable.WriteFile(filepath.Join(dir, taskScript), slurmScript, 0o755); err != nil {
		return err
	}
	_, err := ask(ctx, "sbatch", s.command(dir, f, node)...)
	return err
}

// Plan is the command of Start, for people to read.
func (s Slurm) Plan(dir string, f *notebook.Fleet, node string) []string {
	return append([]string{"sbatch"}, s.command(dir, f, node)...)
}

// Script is the batch script of each task.
func (Slurm) Script() string { return string(slurmScript) }

// Jobs are the tasks of the fleet that have not ended, by node.
func (s Slurm) Jobs(ctx context.Context, f *notebook.Fleet) (map[string]Job, error) {
	text, err := ask(ctx, "squeue", "--noheader", "--name="+f.ID, "--format=%i|%T|%n|%r")
	if err != nil {
		return nil, err
	}
	return parseJobs(text), nil
}

// parseJobs reads lines of a job's number, state, requested node and reason.
func parseJobs(text string) map[string]Job {
	all := map[string]Job{}
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(words) < 4 {
			continue
		}
		j := Job{ID: words[0], Running: words[1] != "PENDING", Ending: words[1] == "COMPLETING"}
		if !j.Running {
			j.Why = words[3]
		}
		// A node may have a job that ends and its successor.
		if other, is := all[words[2]]; !is || other.Ending || j.Running && !j.Ending && !other.Running {
			all[words[2]] = j
		}
	}
	return all
}

// Cancel ends all tasks of the fleet.
func (s Slurm) Cancel(ctx context.Context, f *notebook.Fleet) error {
	_, err := ask(ctx, "scancel", "--name="+f.ID)
	return err
}
