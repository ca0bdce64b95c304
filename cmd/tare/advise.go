package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/price"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
)

func adviseCommand() *cobra.Command {
	var o advise.Options
	var format, objective, demand, prices string
	var pick int
	formats := append([]string{"text", "json"}, apply.Formats...)
	preferences := []string{string(advise.Latency), string(advise.Cost)}
	c := &cobra.Command{
		Use:   "advise DIR…",
		Short: "Recommend a platform, with the reason and the configuration to apply",
		Long: `Ranks the measured configurations, and those that the model predicts (marked as predicted), by the upper end of the 95 %
interval. A sentence says why the first is first, and which others are indistinguishable from it. Emulated configurations and
those with a caveat are not ranked. Formats other than text and json print the settings to apply: a docker command line, a
compose service, a Kubernetes pod with the kubelet's configuration, a libvirt domain, or a systemd unit. They are for the
best configuration that the format can express, or for number N of the ranking (--pick N).

With --objective 'p99<50ms' and --prices FILE, Tare ranks the choices of a capacity study by what it costs to keep the
objective. With --demand 2000/s, that is the price of the instances that the demand needs; otherwise, that of a million
requests.

For the folder of a fleet, or a folder of results folders, it counts on how many hosts each choice is the best.`,
		Example: `  tare advise R
  tare advise R --prefer cost --exclude bm
  tare advise R --workload wordpress --metric p99 --instance large
  tare advise R --objective 'p99<50ms' --demand 2000/s --prices prices.csv
  tare advise R --workload ffmpeg --format docker
  tare advise R --workload ffmpeg --format kubernetes --pick 2 >pod.yaml`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := oneOf("--format", format, formats...); err != nil {
				return err
			}
			if err := oneOf("--prefer", string(o.Prefer), preferences...); err != nil {
				return err
			}
			if err := notEmpty(c, "workload", "metric", "exclude", "instance", "objective", "demand", "prices"); err != nil {
				return err
			}
			picked := c.Flags().Changed("pick")
			if picked && pick < 1 {
				return fmt.Errorf("--pick %d: must be a position in the ranking, at least 1", pick)
			}
			if picked && (format == "text" || format == "json") {
				return fmt.Errorf("--pick selects the configuration to print: use it with --format %s", strings.Join(apply.Formats, ", "))
			}
			if err := offered(&o, objective, demand, prices); err != nil {
				return err
			}
			opt := data.Options{Kinds: kinds.All, Baseline: bareMetal}
			if many, err := manyFolders(dirs); err != nil {
				return err
			} else if many != nil {
				return adviseFleet(many, o, opt, format)
			}
			s, err := data.Read(dirs, opt)
			if err != nil {
				return err
			}
			a, err := advise.Of(s, o)
			if err != nil {
				return err
			}
			switch format {
			case "text":
				if err := terminal.Advice(os.Stdout, a, screen(os.Stdout)); err != nil || o.Objective == nil {
					return err
				}
				return terminal.Cautions(os.Stdout, s, screen(os.Stdout))
			case "json":
				return export.Advice(os.Stdout, a)
			}
			return apply.Write(os.Stdout, a, format, pick)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Workload, "workload", "", "the workload's name, or its name with parameters, as the ranking shows it")
	f.StringVar(&o.Metric, "metric", "", "rank by this secondary metric of the workload, such as p99")
	f.StringVar((*string)(&o.Prefer), "prefer", string(advise.Latency), "latency (the metric) or cost (CPUs × the metric)")
	f.StringSliceVar(&o.Exclude, "exclude", nil, "platforms, engines or CPU limits to leave out: bm,vmcn,pinned")
	f.StringVar(&o.Instance, "instance", "", "only this size: a name that the study uses, or CPUs/memory such as 4/16GB")
	f.StringVar(&objective, "objective", "", "rank a capacity study by the cost of keeping this `OBJECTIVE`, such as 'p99<50ms'; needs --prices")
	f.StringVar(&demand, "demand", "", "with --objective: requests a second in all, such as 2000/s (default: all that each instance answers)")
	f.StringVar(&prices, "prices", "", "with --objective: price list, a CSV `FILE` (docs/advise.md)")
	f.StringVar(&format, "format", "text", strings.Join(formats, ", "))
	suggest(c, "format", formats...)
	suggest(c, "prefer", preferences...)
	f.IntVar(&pick, "pick", 0, "print settings of this position (default: the first that the format can express)")
	return c
}

// offered reads the flags that ask for prices.
func offered(o *advise.Options, objective, demand, prices string) error {
	if objective != "" {
		of, err := advise.ParseObjective(objective)
		if err != nil {
			return fmt.Errorf("--objective %w", err)
		}
		o.Objective = &of
	}
	if demand != "" {
		var err error
		if o.Demand, err = advise.ParseDemand(demand); err != nil {
			return fmt.Errorf("--demand %w", err)
		}
	}
	if prices == "" {
		return nil
	}
	f, err := os.Open(prices)
	if err != nil {
		return fmt.Errorf("--prices: %w", err)
	}
	defer f.Close()
	if o.Prices, err = price.Read(f); err != nil {
		return fmt.Errorf("--prices %s: %w", prices, err)
	}
	return nil
}
