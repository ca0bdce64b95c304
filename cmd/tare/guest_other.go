//go:build !linux

package main

import "github.com/spf13/cobra"

// labCommands only read results: only Linux measures.
func labCommands() []*cobra.Command {
	var p predicting
	c := predictDesk(&p)
	c.Example = "  tare predict C\n  tare predict C --of R"
	c.RunE = func(_ *cobra.Command, dirs []string) error {
		p.calibration = dirs
		return p.answer()
	}
	tableOrJSON(c, &p.format)
	return []*cobra.Command{c}
}

// labCompletions are none, like the commands.
func labCompletions() map[string]completer { return nil }
