package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tare/desk/advise"
)

func adviseCommand() *cobra.Command {
	var o advise.Options
	var format string
	var pick int
	c := &cobra.Command{
		Use:   "advise DIR…",
		Short: "What to choose, why, and the configuration to apply",
		Long: `Ranks what was measured, and marked as such what the model predicts, by the upper end of the 95 % interval; says in a
sentence why the first is first, and what cannot be told from it. What is emulated or in doubt is not ranked.
With a format other than text and json it prints what to apply for the best that the format can express, or for
--pick N of the ranking: a docker command line, a compose service, a Kubernetes pod with the kubelet's configuration, a
libvirt domain, or a systemd unit.`,
		Example: `  tare advise R
  tare advise R --prefer cost --exclude bm
  tare advise R --workload wordpress --metric p99 --instance large
  tare advise R --workload ffmpeg --format docker
  tare advise R --workload ffmpeg --format kubernetes --pick 2 >pod.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := oneOf("--format", format, append([]string{"text", "json"}, advise.Formats...)...); err != nil {
				return err
			}
			if err := oneOf("--prefer", string(o.Prefer), string(advise.Latency), string(advise.Cost)); err != nil {
				return err
			}
			picked := c.Flags().Changed("pick")
			if picked && pick < 1 {
				return fmt.Errorf("--pick %d: a number of the ranking, from 1, was expected", pick)
			}
			if picked && (format == "text" || format == "json") {
				return fmt.Errorf("--pick chooses what to apply: it goes with --format %s", strings.Join(advise.Formats, ", "))
			}
			a, err := advise.Read(dirs, o)
			if err != nil {
				return err
			}
			switch format {
			case "text":
				return a.Text(os.Stdout)
			case "json":
				return a.JSON(os.Stdout)
			}
			return a.Apply(os.Stdout, format, pick)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Workload, "workload", "", "the work: a name, or one with its parameters as the ranking has it")
	f.StringVar(&o.Metric, "metric", "", "a further figure of the workload, like p99, instead of its metric")
	f.StringVar((*string)(&o.Prefer), "prefer", string(advise.Latency), "latency (the metric) or cost (cores × the metric)")
	f.StringSliceVar(&o.Exclude, "exclude", nil, "platforms, engines or provisionings that are not wanted: bm,vmcn,pinned")
	f.StringVar(&o.Instance, "instance", "", "this size alone: a name of the study's, or cores/memory like 4/16GB")
	f.StringVar(&format, "format", "text", "text, json, "+strings.Join(advise.Formats, ", "))
	f.IntVar(&pick, "pick", 0, "the number in the ranking to apply; default: the first that the format can express")
	return c
}
