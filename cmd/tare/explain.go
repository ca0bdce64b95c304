package main

import (
	"os"

	"github.com/spf13/cobra"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/export"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
)

func explainCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "explain DIR…",
		Short: "Attribute the overhead: where the extra time went, and how much is unexplained",
		Long: `For each treatment of a study that was run with --explain: where the time went that it took longer than bare metal, in
seconds and as shares of the overhead with 95 % intervals, and how much is unexplained. The parts add up to the overhead
of the untraced trials; the cost of the tracers stands beside it. A sentence names the largest part, and names as causes
only parts that are significantly different from zero.`,
		Example: `  tare run quick --explain --out R && tare explain R
  tare explain R --format json | jq '.accounts[] | {name, gap_s, parts}'`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			s, err := data.Read(dirs, data.Options{Kinds: kinds.All})
			if err != nil {
				return err
			}
			a, err := explain.From(s)
			if err != nil {
				return err
			}
			if format == "json" {
				return export.Accounts(os.Stdout, a)
			}
			return terminal.Accounts(os.Stdout, a, screen(os.Stdout))
		},
	}
	tableOrJSON(c, &format)
	return c
}
