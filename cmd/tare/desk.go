package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"tare/desk/claims"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/model"
	"tare/desk/page"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/notebook"
	"tare/notebook/durable"
)

// deskCommands read results. They need neither root nor Linux.
func deskCommands() []*cobra.Command {
	return []*cobra.Command{summaryCommand(), reportCommand(), exportCommand(), claimsCommand(), adviseCommand(), explainCommand(), compareCommand(), historyCommand(), schemaCommand(), versionCommand(), completionCommand(), manCommand()}
}

func summaryCommand() *cobra.Command {
	var format, margin string
	var against reference
	var shown details
	c := &cobra.Command{
		Use:   "summary DIR… | FLEET",
		Short: "Print the answer: how much slower each environment is than bare metal",
		Long: `Prints the finding first. A table follows, with a line for each environment: its mean, its change from bare metal with a
95 % interval, and a verdict. The verdict is slower, faster, equivalent or inconclusive. It depends on whether the change is
beyond the margin or within it. The last part says what the result does not show, how far to trust it, and what to do next.

The command pools several folders. Runs on the same host count as more rounds. Each other host has its own lines.

For the folder of a fleet, or a folder of results folders, it combines all hosts. It prints means over hosts, what to expect on
the next host, classes of hosts that differ, and hosts unlike the others. docs/fleet.md explains these. docs/results.md explains
the keys of the JSON and the columns of the CSV. docs/regular.md explains the metrics for Prometheus.`,
		Example: `  tare summary R
  tare summary R --verbose
  tare summary R --format json | jq '.rows[] | {name, verdict, change}'
  tare summary R --format csv >table.csv
  tare summary R --against cn:docker:quota
  tare summary R --against cn:docker:quota,instance=1/1GB
  tare summary FLEET`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			matters, err := marginOf(margin)
			if err != nil {
				return err
			}
			reference, err := against.parse()
			if err != nil {
				return err
			}
			opt := data.Options{Kinds: kinds.All, Baseline: reference, Margin: matters}
			if many, err := manyFolders(dirs); err != nil {
				return err
			} else if many != nil {
				return summarizeFleet(many, opt, format, shown)
			}
			s, err := data.Read(dirs, opt)
			if err != nil {
				return err
			}
			return printSummary(os.Stdout, s, format, shown)
		},
	}
	formatFlag(c, &format, "table", "json", "csv", "openmetrics")
	c.Flags().BoolVar(&shown.emulated, "all", false, "also show emulated VMs, which do not represent a VM's cost")
	c.Flags().BoolVar(&shown.everything, "verbose", false, "also print every row, metric, note and check")
	c.Flags().StringVar(&margin, "margin", "", "smallest difference that matters, such as 5% (default: the study's, else 1%)")
	against.flag(c)
	return c
}

// bareMetal is the reference of claims, advice and time breakdowns, whatever reference the study names.
var bareMetal = notebook.Reference{notebook.FactorPlatform.Name: notebook.BM}

// reference is the text of --against.
type reference string

// referenceUsage is the help of --against.
const referenceUsage = "compare with this environment, not with bare metal: `PLATFORM[:ENGINE][:quota|set]`, such as cn:docker:quota"

// flag adds --against to a command, and --baseline, its older name.
func (r *reference) flag(c *cobra.Command) {
	c.Flags().StringVar((*string)(r), "against", "", referenceUsage)
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "baseline" {
			name = "against"
		}
		return pflag.NormalizedName(name)
	})
}

// parse reads the text. An empty text gives no keys, which stands for bare metal.
func (r reference) parse() (map[string]string, error) {
	keys, err := notebook.ParseReference(string(r))
	if err != nil {
		return nil, fmt.Errorf("--against %w", err)
	}
	return keys, nil
}

// details are what a summary shows in addition to the first answer.
type details struct {
	emulated   bool // figures of emulated environments
	everything bool // every row, metric and caveat
}

func printSummary(w *os.File, s *data.Summary, format string, shown details) error {
	switch format {
	case "json":
		return export.Summary(w, s)
	case "csv":
		return export.SummaryTable(w, s, term.IsTerminal(int(w.Fd())))
	case "openmetrics":
		return export.SummaryMetrics(w, s)
	}
	if shown.everything {
		return terminal.Summary(w, s, screen(w))
	}
	return terminal.Answer(w, s, shown.emulated, screen(w))
}

// screen describes the terminal behind a file. A pipe has no width, so its lines are as long as they need to be.
func screen(f *os.File) terminal.Screen {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return terminal.Screen{}
	}
	return terminal.Screen{Width: width, Colour: os.Getenv("NO_COLOR") == ""}
}

func reportCommand() *cobra.Command {
	var out, tolerance, margin string
	var against reference
	var pool bool
	c := &cobra.Command{
		Use:   "report DIR… | OLD NEW",
		Short: "Write one self-contained HTML page, and its figures as SVG and PDF",
		Long: `Writes the report of a folder. For two folders of one study it writes a comparison of the second folder with the first, into
a new folder. With --pool it pools the two folders, as more rounds. It always pools three or more folders, and folders of
different studies. For the folder of a fleet, or a folder of results folders, it combines all hosts.`,
		Example: "  tare report R\n  tare report before after --out changes\n  tare report R R-2 --pool\n  tare report R --out paper --tolerance 5%",
		Args:    folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			bearable, err := share("--tolerance", tolerance)
			if err != nil {
				return err
			}
			matters, err := marginOf(margin)
			if err != nil {
				return err
			}
			reference, err := against.parse()
			if err != nil {
				return err
			}
			opt := data.Options{Kinds: kinds.All, Baseline: reference, Margin: matters}
			if many, err := manyFolders(dirs); err != nil {
				return err
			} else if many != nil {
				return reportFleet(many, cmp.Or(out, dirs[0]), opt)
			}
			files, err := reportOf(dirs, out, pool, bearable, opt)
			if err != nil {
				return err
			}
			for _, f := range files {
				fmt.Println(f)
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder to write to (default: the first DIR, or OLD-to-NEW)")
	c.Flags().StringVar(&margin, "margin", "", "smallest difference that matters, such as 5% (default: the study's, else 1%)")
	c.Flags().BoolVar(&pool, "pool", false, "read two folders of one study together instead of comparing them")
	against.flag(c)
	c.Flags().StringVar(&tolerance, "tolerance", "10%", "highest acceptable overhead for recommending a CHR")
	return c
}

// marginOf parses --margin as a fraction; 0 where the flag is empty.
func marginOf(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	return share("--margin", text)
}

// share parses a percentage, such as 5%, as a fraction.
func share(flag, text string) (float64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !ok || !(v > 0 && v <= 100) {
		return 0, fmt.Errorf("%s %q: must be a percentage above 0%% and at most 100%%, such as 5%%", flag, text)
	}
	return v / 100, nil
}

// writeReport writes the report of a summary, with verdicts on the claims that its studies name, and returns the files. An empty out is the
// first folder. A tolerance of 0 is the model's default.
func writeReport(s *data.Summary, out string, tolerance float64) ([]string, error) {
	var about []claims.Claim
	if nameClaims(s) {
		var err error
		if about, err = claims.About(s); err != nil {
			return nil, err
		}
	}
	files, err := page.WriteSummary(s, cmp.Or(out, s.Folders[0].Dir), page.Options{Claims: about, Model: model.Options{Tolerance: tolerance}})
	if out == "" && errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; name a folder that you may write to with --out", err)
	}
	return files, err
}

// reportOf writes the report of folders. For two folders of one study it writes what changed, unless pool is set.
func reportOf(dirs []string, out string, pool bool, bearable float64, opt data.Options) ([]string, error) {
	if len(dirs) == 2 && !pool {
		old, new, err := readBoth(dirs[0], dirs[1], opt)
		if err != nil {
			return nil, err
		}
		if old.Folders[0].Study.Name == new.Folders[0].Study.Name {
			found, err := compare.From(old, new, old.Margin())
			if err != nil {
				return nil, fmt.Errorf("%w; --pool reads the folders together", err)
			}
			base := func(s *data.Summary) string { return filepath.Base(filepath.Clean(s.Folders[0].Dir)) }
			return page.WriteComparison(found, cmp.Or(out, base(old)+"-to-"+base(new)))
		}
	}
	s, err := data.Read(dirs, opt)
	if err != nil {
		return nil, err
	}
	return writeReport(s, out, bearable)
}

func exportCommand() *cobra.Command {
	var format, out string
	c := &cobra.Command{
		Use:   "export DIR… | FLEET",
		Short: "Write the raw data: one row per run, for pandas, DuckDB or R",
		Long: `Writes a row for each run of the folders, with its configuration, command, image, host and time. Cells are as Tare
recorded them. A spreadsheet may take a cell that begins with = for a formula, so open strangers' folders as text.

For the folder of a fleet it writes the runs of all nodes. It names folders that it cannot read on standard error.`,
		Example: "  tare export R --format csv >trials.csv\n  tare export R --format parquet --out trials.parquet",
		Args:    folders,
		RunE: func(c *cobra.Command, dirs []string) (err error) {
			f, err := export.FormatOf(format)
			if !c.Flags().Changed("format") && out != "" {
				if of, known := export.FormatOf(strings.TrimPrefix(filepath.Ext(out), ".")); known == nil {
					f = of
				}
			}
			if err != nil {
				return fmt.Errorf("--format: %w", err)
			}
			many, err := manyFolders(dirs)
			if err != nil {
				return err
			}
			write := func(w io.Writer) error {
				b := bufio.NewWriterSize(w, 1<<20)
				if many != nil {
					err = export.WriteMany(b, many, f, skipped)
				} else {
					err = export.Write(b, dirs, f)
				}
				if err != nil {
					return err
				}
				return b.Flush()
			}
			if out != "" {
				return durable.Output(out, 0o644, write)
			}
			if term.IsTerminal(int(os.Stdout.Fd())) {
				if f.Binary {
					return fmt.Errorf("%s is binary: name a file with --out, or redirect the output", f.Name)
				}
				f = f.OnTerminal()
			}
			return write(os.Stdout)
		},
	}
	c.Flags().StringVar(&format, "format", "csv", strings.Join(export.Names(), ", ")+"; without it, the extension of --out decides")
	suggest(c, "format", export.Names()...)
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}
