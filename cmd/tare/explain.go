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
		Short: "Why it costs that: where the extra time went, with what is unexplained",
		Long: `For each treatment of a study that was run with --explain: what the time went on that it took longer than bare metal,
in seconds and as shares of the gap with 95 % intervals, and what is left unexplained. It adds up to the gap, which is
of the trials that no probe looked at; what the probes cost is beside it. A sentence says the largest part in plain
words, and names as a cause only what the intervals tell from nothing.`,
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
