package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/history"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/notebook"
	"tare/notebook/durable"
)

func historyCommand() *cobra.Command {
	var format, out string
	var against reference
	c := &cobra.Command{
		Use:   "history DIR…",
		Short: "Find when the results of a repeated study changed",
		Long: `Reads one results folder for each run of a study, and sorts the runs by the time at which they ended. A DIR may also hold
several results folders. For each configuration the command shows the latest result, how much results vary from run to
run, and each change of their level. For each change it lists what else changed: the kernel, a version, a setting of the host.

It compares the ratios to bare metal, so a change in the speed of the whole host does not affect them. It looks for changes in
histories of at least 10 runs, and finds a new level after 3 runs at the earliest. It looks again after each run. In 40 runs
without a change, all these looks together report a change in at most 5 of 100 histories.

--format openmetrics writes the latest run and its history for Prometheus (docs/regular.md).`,
		Example: `  tare history /var/lib/tare-history/quick
  tare history /var/lib/nightly/* --format json | jq '.configurations[] | select(.changes != [])'
  tare history /var/lib/tare-history/quick --format openmetrics --out /var/lib/prometheus/node-exporter/tare.prom`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			to, err := against.parse()
			if err != nil {
				return err
			}
			if err := notEmpty(c, "against", "out"); err != nil {
				return err
			}
			if dirs, err = eachRun(dirs); err != nil {
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
			if out != "" {
				return durable.Output(out, 0o644, func(w io.Writer) error { return writeHistory(w, h, format, terminal.Screen{}) })
			}
			return writeHistory(os.Stdout, h, format, screen(os.Stdout))
		},
	}
	formatFlag(c, &format, "table", "json", "openmetrics")
	against.flag(c)
	c.Flags().StringVar(&out, "out", "", "file to write, replaced as a whole (default: standard output)")
	return c
}

func writeHistory(w io.Writer, h *history.History, format string, on terminal.Screen) error {
	switch format {
	case "json":
		return export.History(w, h)
	case "openmetrics":
		return export.HistoryMetrics(w, h)
	}
	return terminal.History(w, h, on)
}

// eachRun replaces a folder of results folders with these. It ignores everything else in it, such as the folder of a run that failed before it
// measured.
func eachRun(dirs []string) (all []string, err error) {
	for _, dir := range dirs {
		held, err := notebook.Folders(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // reading the folder itself says what is wrong
			return nil, err
		}
		if err == nil && held == nil && !notebook.Exists(dir) {
			return nil, fmt.Errorf("%s holds no results; name results folders, or a folder that holds some", dir)
		}
		if held == nil {
			held = []string{dir}
		}
		all = append(all, held...)
	}
	return all, nil
}
