package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/desk/chart"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook/durable"
	"tare/stats"
)

// failed is the status of `tare compare` where the condition of --fail-if holds.
const failed = exit(3)

func compareCommand() *cobra.Command {
	var o comparing
	formats := []string{"table", "json", "markdown"}
	c := &cobra.Command{
		Use:   "compare OLD [NEW]",
		Short: "Say what changed between two folders of one study, or two kernels of VMs",
		Long: `Compares two results folders of the same study, measured before and after something changed: a kernel, an engine's
version, the host. It compares the ratios to bare metal, so a change of the whole host's speed has no effect on them. It shows
the change of bare metal as the host's change. If a folder lacks bare metal, it compares means and says so. --against replaces
bare metal with another environment.

Each configuration that both folders have gets one of four verdicts: slower by at least the margin M (a ratio of 1+M); faster
by at least the margin (a ratio of 1/(1+M)); equivalent within the margin; or inconclusive, with the approximate number of
rounds that would settle it. The verdicts are corrected for multiple comparisons. The output lists other differences between
the folders first.

With one folder, measured with two kernels of VMs (--vm-kernel), it compares the second kernel with the first. Both ran in each
round, so it compares the means of the same rounds, and a drift of the host's speed has no effect on the result.

With --fail-if the exit status is 3 if the whole interval of a configuration is beyond the bound. With ratio>1.03 the
configuration now costs more than 1.03 times as much as before. With ratio<0.97 it costs less than 0.97 times as much. The
status is also 3 if a configuration that was measured before has no value now. Standard error names these configurations. For
a metric where higher is better, the cost is the value before divided by the value after. ratio>1.03 is a loss there too.`,
		Example: `  tare compare before after
  tare compare before after --margin 2% --fail-if 'ratio>1.03'
  tare compare before after --against cn:docker
  tare compare kernels
  tare compare before after --format markdown >note.md
  tare compare before after --figure changes.svg`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return fmt.Errorf("compare: needs two results folders, before and after, or one with two kernels of VMs: write %s OLD [NEW]", c.CommandPath())
			}
			return nil
		},
		PreRunE: func(*cobra.Command, []string) error { return oneOf("--format", o.format, formats...) },
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := notEmpty(c, "margin", "fail-if", "figure"); err != nil {
				return err
			}
			return o.run(dirs)
		},
	}
	c.Flags().StringVar(&o.format, "format", "table", "table, json, or markdown: a short note for a pull request")
	suggest(c, "format", formats...)
	c.Flags().StringVar(&o.margin, "margin", "", "smallest change that matters (default 1%; with one folder its study's)")
	o.against.flag(c)
	c.Flags().StringVar(&o.figure, "figure", "", "file for a figure of the changes, .svg or .pdf")
	c.Flags().StringVar(&o.failIf, "fail-if", "", "exit with status 3 where a configuration meets this: ratio>NUMBER or ratio<NUMBER")
	return c
}

// comparing holds the flags of compare.
type comparing struct {
	format, margin, figure, failIf string
	against                        reference
}

func (o comparing) run(dirs []string) error {
	var gate func(*compare.Comparison) bool
	if o.failIf != "" {
		var err error
		if gate, err = bound(o.failIf); err != nil {
			return err
		}
	}
	found, err := o.compare(dirs)
	if err != nil {
		return err
	}
	if o.figure != "" {
		if err := draw(found, o.figure); err != nil {
			return err
		}
	}
	if err := printComparison(found, o.format); err != nil {
		return err
	}
	if gate != nil && gate(found) {
		return failed
	}
	return nil
}

func printComparison(c *compare.Comparison, format string) error {
	switch format {
	case "json":
		return export.Comparison(os.Stdout, c)
	case "markdown":
		return terminal.Note(os.Stdout, c)
	}
	return terminal.Comparison(os.Stdout, c, screen(os.Stdout))
}

// compare reads the folders and compares them.
func (o comparing) compare(dirs []string) (*compare.Comparison, error) {
	matters := 0.0
	if o.margin != "" {
		var err error
		if matters, err = share("--margin", o.margin); err != nil {
			return nil, err
		}
	}
	to, err := o.against.parse()
	if err != nil {
		return nil, err
	}
	opt := data.Options{Kinds: kinds.All, Baseline: to}
	if len(dirs) == 1 {
		opt.Margin = matters
		s, err := data.Read(dirs, opt)
		if err != nil {
			return nil, err
		}
		return compare.Kernels(s, s.Margin())
	}
	matters = cmp.Or(matters, stats.Margin)
	old, new, err := readBoth(dirs[0], dirs[1], opt)
	if err != nil {
		return nil, err
	}
	return compare.From(old, new, matters)
}

// sameFolder says whether two paths lead to one folder that exists.
func sameFolder(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// readBoth reads two folders separately, with one reference for both.
func readBoth(before, after string, opt data.Options) (old, new *data.Summary, err error) {
	if sameFolder(before, after) {
		return nil, nil, fmt.Errorf("compare: %s and %s are the same folder", before, after)
	}
	both, err := readEach([]string{before, after}, opt)
	if err != nil {
		return nil, nil, err
	}
	return both[0], both[1], nil
}

// readEach reads each folder by itself, with one reference for all: the named one, or that of all their studies, or else bare metal.
func readEach(dirs []string, opt data.Options) (all []*data.Summary, err error) {
	for _, dir := range dirs {
		s, err := data.Read([]string{dir}, opt)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(opt.Baseline) == 0 && slices.ContainsFunc(all, func(s *data.Summary) bool { return !maps.Equal(s.Baseline, all[0].Baseline) }) {
		opt.Baseline = bareMetal
		return readEach(dirs, opt)
	}
	return all, nil
}

var boundary = regexp.MustCompile(`^\s*ratio\s*([<>])\s*([0-9.]+)\s*$`)

// bound parses the condition of --fail-if. The gate reports whether a comparison fails it. It names on standard error the treatments that do, and
// those that it cannot check.
func bound(text string) (gate func(*compare.Comparison) bool, err error) {
	m := boundary.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("--fail-if %q: must be ratio>NUMBER or ratio<NUMBER, such as 'ratio>1.03'", text)
	}
	end, err := strconv.ParseFloat(m[2], 64)
	if err != nil || end <= 0 {
		return nil, fmt.Errorf("--fail-if %q: %s must be a number above 0", text, m[2])
	}
	return func(c *compare.Comparison) (fails bool) {
		say := func(what, why string) { fmt.Fprintf(os.Stderr, "tare: %s: %s\n", what, why) }
		for _, x := range c.Changes {
			name := words.ChangedWhere(c, x)
			cost := x.Cost()
			switch beyond := m[1] == ">" && cost.Low > end || m[1] == "<" && cost.High < end; {
			case x.Why == compare.Missing:
				fails = true
				say(name, "cannot be checked: "+words.ChangedBy(c, x))
			case x.Why != "":
				say(name, "is not checked: "+words.ChangedBy(c, x))
			case beyond:
				fails = true
				say(name, fmt.Sprintf("ratio%s%s: %s", m[1], m[2], words.ChangedBy(c, x)))
			}
		}
		for _, r := range c.Gone {
			fails = true
			say(r.Treatment.ID, "cannot be checked: only the first folder has it")
		}
		return fails
	}, nil
}

// draw writes the figure of a comparison to a file.
func draw(c *compare.Comparison, file string) error {
	f := chart.OfComparison(c)
	var bytes []byte
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".svg":
		bytes = f.SVG()
	case ".pdf":
		var err error
		if bytes, err = f.PDF(c.New.Folders[0].Study.Created); err != nil {
			return err
		}
	default:
		return fmt.Errorf("--figure %q: must end in .svg or .pdf", file)
	}
	return durable.Output(file, 0o644, durable.Content(bytes))
}
