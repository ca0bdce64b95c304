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
		Short: "Say since when a study that runs regularly gives other results",
		Long: `Reads one results folder for each run of a study, in the order in which they ended. For each configuration it shows the
latest result and how much results vary from run to run, and finds the runs since which the level is another one. It says what
else differs since then: the kernel, a version, a setting of the host.

It compares the ratios to bare metal, so a change of the whole host's speed has no effect on them. It looks for changes in
histories of at least 10 runs, and a new level shows after 3 runs at the earliest. Of a hundred histories of 40 runs without a
change, at least 95 report none.`,
		Example: "  tare history /var/lib/nightly/*\n  tare history /var/lib/nightly/* --format json | jq '.configurations[] | select(.changes != [])'",
		Args:    folders,
		RunE: func(_ *cobra.Command, dirs []string) error {
			to, err := against.parse()
			if err != nil {
				return err
			}
			var runs []*data.Summary
			for _, dir := range dirs {
				s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All, Baseline: to})
				if err != nil {
					return err
				}
				runs = append(runs, s)
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
