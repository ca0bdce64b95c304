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
		Long: `Shows where each configuration spent more time than bare metal, for a study that ran with --explain. Parts are in seconds
and in shares of the overhead, with 95 % intervals, and add up to the overhead of the untraced runs. One part is
unexplained. The cost of the tracers is listed separately. A sentence names the largest part. Only parts that
differ significantly from zero count as causes.`,
		Example: `  tare run quick --explain --out R && tare explain R
  tare explain R --format json | jq '.accounts[] | {name, gap_s, parts}'`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := oneHost("explain", dirs); err != nil {
				return err
			}
			s, err := data.Read(dirs, data.Options{Kinds: kinds.All, Baseline: bareMetal})
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
