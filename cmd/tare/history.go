package main

import (
	"os"

	"github.com/spf13/cobra"

	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/history"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
)

func historyCommand() *cobra.Command {
	var format string
	var against reference
	c := &cobra.Command{
		Use:   "history DIR…",
		Short: "Find when the results of a repeated study changed",
		Long: `Reads one results folder for each run of a study, and sorts the runs by the time at which they ended. For each configuration
it shows the latest result, how much results vary from run to run, and each change of their level. For each change it lists
what else changed: the kernel, a version, a setting of the host.

It compares the ratios to bare metal, so a change in the speed of the whole host does not affect them. It looks for changes in
histories of at least 10 runs, and finds a new level after 3 runs at the earliest. It looks again after each run. In 40 runs
without a change, all these looks together report a change in at most 5 of 100 histories.`,
		Example: "  tare history /var/lib/nightly/*\n  tare history /var/lib/nightly/* --format json | jq '.configurations[] | select(.changes != [])'",
		Args:    folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			to, err := against.parse()
			if err != nil {
				return err
			}
			if err := notEmpty(c, "against"); err != nil {
				return err
			}
			runs, err := readEach(dirs, data.Options{Kinds: kinds.All, Baseline: to})
			if err != nil {
				return err
			}
			h, err := history.From(runs)
			if err != nil {
				return err
			}
			if format == "json" {
				return export.History(os.Stdout, h)
			}
			return terminal.History(os.Stdout, h, screen(os.Stdout))
		},
	}
	tableOrJSON(c, &format)
	against.flag(c)
	return c
}
