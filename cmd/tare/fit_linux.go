package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
)

// The study and the work of tare fit without a name.
const (
	fitStudy    = "density-small"
	fitPlatform = notebook.CN + ":docker|lxc|crun" // the study begins with LXC, as its paper does
	fitWork     = "shor"
)

func fitCommand() *cobra.Command {
	var r running
	var limit, work string
	c := &cobra.Command{
		Use:   "fit [STUDY|FILE]",
		Short: "Find how many containers or VMs fit on this host, and what runs out first",
		Long: `Adds busy containers or VMs next to a measured container or VM, until the measured one misses the --limit. It doubles their
number first and then narrows the range. The answer is the greatest number that keeps the limit, and the resource that ran out:
CPU, memory, I/O, process IDs or the engine. The neighbours increment an integer and use little memory. Tare therefore also
reports how many would fit into the host's memory if each used all of its memory.

'p95 < 1.5x' means that the 95th percentile of the measured runs stays below 1.5 times its value without neighbours. Tare
searches twice, each time with a new measured container or VM. If the --time-budget is too short for two searches, it searches
once. A search ends after ten minutes, or with its share of --time-budget.

Without a STUDY the work is ` + fitWork + ` of the study ` + fitStudy + `, in containers with a CPU quota.`,
		Example: `  sudo tare fit --time-budget 5m
  sudo tare fit --platforms container:docker,vm --size 1/1GB --limit 'p50 < 2x' --time-budget 20m
  sudo tare fit --workload ./my-workload --platforms vm
  sudo tare fit density --only workload=sjeng,platform=cn,provisioning=pinned`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("fit %q: only one study is allowed", args[1])
			}
			if err := r.check(c); err != nil {
				return err
			}
			if err := notEmpty(c, "limit", "workload"); err != nil {
				return err
			}
			var err error
			if r.known, err = studyfile.ParseLimit(limit, session.Known.Kinds); err != nil {
				return fmt.Errorf("--limit %w", err)
			}
			spec, err := r.fitting(args, work)
			if err != nil {
				return err
			}
			onHost := func(p studyfile.Place) bool { return p.Platform == notebook.BM }
			if r.platforms != "" && slices.ContainsFunc(spec.Platforms, onHost) {
				return fmt.Errorf("--platforms %s: tare fit adds containers or VMs; name container, vm or vm-container", r.platforms)
			}
			if spec.Platforms = slices.DeleteFunc(spec.Platforms, onHost); len(spec.Platforms) == 0 {
				return fmt.Errorf("study %s: has bare metal only: name container, vm or vm-container with --platforms", spec.Name)
			}
			return r.run(c.Context(), spec, c.Flags().Changed("seed"))
		},
	}
	r.flags(c, "", "")
	c.Flags().StringVar(&limit, "limit", "p95 < 1.5x", "what the measured one must keep: `OBJECTIVE` of p10 to p99, relative to its value without neighbours")
	c.Flags().StringVar(&work, "workload", "", "`WORKLOAD` to measure: its name (tare workload list), or a folder; not all of the study's")
	return c
}

// fitting is the study that the arguments name, or the usual one.
func (r *running) fitting(args []string, work string) (*studyfile.Spec, error) {
	if len(args) > 0 {
		return r.study(args[0], work)
	}
	if work == "" && r.kept["workload"] == "" {
		work = fitWork
	}
	if r.platforms == "" && r.kept[notebook.FactorPlatform.Name] == "" {
		r.platforms = fitPlatform
	}
	if r.provisioning == "" && r.kept[notebook.FactorProvisioning.Name] == "" {
		r.provisioning = notebook.Vanilla
	}
	return r.study(fitStudy, work)
}
