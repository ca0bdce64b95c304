package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/desk/explain"
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
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := oneOf("--format", format, "table", "json"); err != nil {
				return err
			}
			a, err := explain.Read(dirs)
			if err != nil {
				return err
			}
			if format == "json" {
				return a.JSON(os.Stdout)
			}
			width, _, err := term.GetSize(int(os.Stdout.Fd()))
			tty := err == nil
			if !tty {
				width = 0 // a pipe has no width: lines are as long as they are
			}
			return a.Table(os.Stdout, width, tty && os.Getenv("NO_COLOR") == "")
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table or json")
	return c
}
