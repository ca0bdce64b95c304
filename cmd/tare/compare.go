package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"tare/desk/chart"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/notebook/durable"
)

// failed is the status of `tare compare` where what --fail-if names has come about.
const failed = exit(3)

func compareCommand() *cobra.Command {
	var format, margin, figure, failIf string
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Say what changed between two folders of one study",
		Long: `Compares two folders of results of the same study, measured before and after something changed: a kernel, an engine's
version, the host. Each treatment that both have costs more by at least the margin, costs less by at least the margin, makes
no difference as large as the margin, or is open, with about how many rounds would settle it. The answers are
corrected for all that is compared at once. What else differs between the folders is named first.

The rounds of the two folders were not run beside each other: whatever else changed on the host in between is part of
every change.

With --fail-if the exit status is 3 where a treatment's interval lies wholly beyond the bound: ratio>1.03 where one costs more
than 1.03 times as much as before, ratio<0.97 where one costs less.`,
		Example: `  tare compare before after
  tare compare before after --margin 2% --fail-if 'ratio>1.03'
  tare compare before after --format markdown >note.md
  tare compare before after --figure changes.svg`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("compare: two folders of results were expected, before and after: %s OLD NEW", c.CommandPath())
			}
			return nil
		},
		PreRunE: func(*cobra.Command, []string) error { return oneOf("--format", format, "table", "json", "markdown") },
		RunE: func(c *cobra.Command, dirs []string) error {
			beyond := func(compare.Change) bool { return false }
			if failIf != "" {
				var err error
				if beyond, err = bound(failIf); err != nil {
					return err
				}
			}
			matters, err := share("--margin", margin)
			if err != nil {
				return err
			}
			var both [2]*data.Summary
			for i, dir := range dirs {
				if both[i], err = data.Read([]string{dir}, data.Options{}); err != nil {
					return err
				}
			}
			found, err := compare.From(both[0], both[1], matters)
			if err != nil {
				return err
			}
			if figure != "" {
				if err := draw(found, figure); err != nil {
					return err
				}
			}
			switch format {
			case "json":
				err = export.Comparison(os.Stdout, found)
			case "markdown":
				err = terminal.Note(os.Stdout, found)
			default:
				err = terminal.Comparison(os.Stdout, found, screen(os.Stdout))
			}
			if err != nil {
				return err
			}
			for _, x := range found.Changes {
				if beyond(x) {
					return failed
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table, json, or markdown: a short note for a pull request")
	c.Flags().StringVar(&margin, "margin", "1%", "how small a change does not matter")
	c.Flags().StringVar(&figure, "figure", "", "file for a figure of the changes: .svg or .pdf")
	c.Flags().StringVar(&failIf, "fail-if", "", "end with status 3 where this is so of a treatment: ratio>NUMBER or ratio<NUMBER")
	return c
}

var boundary = regexp.MustCompile(`^\s*ratio\s*([<>])\s*([0-9.]+)\s*$`)

// bound parses the condition of --fail-if.
func bound(text string) (beyond func(compare.Change) bool, err error) {
	m := boundary.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("--fail-if %q: ratio>NUMBER or ratio<NUMBER was expected, such as 'ratio>1.03'", text)
	}
	end, err := strconv.ParseFloat(m[2], 64)
	if err != nil || end <= 0 {
		return nil, fmt.Errorf("--fail-if %q: %s is no ratio", text, m[2])
	}
	return func(x compare.Change) bool {
		return !x.Doubtful && (m[1] == ">" && x.Ratio.Low > end || m[1] == "<" && x.Ratio.High < end)
	}, nil
}

// draw writes the figure of a comparison to a file.
func draw(c *compare.Comparison, file string) error {
	f := chart.OfComparison(c)
	var bytes []byte
	switch ext := filepath.Ext(file); ext {
	case ".svg":
		bytes = f.SVG()
	case ".pdf":
		var err error
		if bytes, err = f.PDF(c.New.Folders[0].Study.Created); err != nil {
			return err
		}
	default:
		return fmt.Errorf("--figure %q: a file's name that ends in .svg or .pdf was expected", file)
	}
	return durable.WriteFile(file, bytes, 0o644)
}
