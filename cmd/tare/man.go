package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the help of all commands as man pages, for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(c.Root(), args[0])
		}}
}

// manual is the help of a command, for man pages and for docs/reference.md.
type manual struct {
	name                        string // tare-study-list
	short, usage, long, example string
	options                     []option
	above, below                []string // names of the command above it, and of its subcommands
	status, variables           []option // of all commands; only the root command's manual has them
}

// option is a flag of a command.
type option struct{ name, placeholder, usage, byDefault string }

// manuals are the manuals of a command and of its subcommands. Hidden commands have none.
func manuals(c *cobra.Command) (all []manual) {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	pageName := func(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
	m := manual{name: pageName(c), short: c.Short, usage: c.UseLine(), long: c.Long, example: c.Example}
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		o := option{name: "--" + f.Name}
		if o.placeholder, o.usage = pflag.UnquoteUsage(f); !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			o.byDefault = f.DefValue
		}
		m.options = append(m.options, o)
	})
	if c.HasParent() {
		m.above = []string{pageName(c.Parent())}
	} else {
		m.status, m.variables = statuses, variables
	}
	all = []manual{m}
	for _, sub := range c.Commands() {
		if of := manuals(sub); len(of) > 0 {
			all[0].below = append(all[0].below, of[0].name)
			all = append(all, of...)
		}
	}
	return all
}

// writePages writes the man pages of a command and its subcommands into a folder.
func writePages(c *cobra.Command, dir string) error {
	for _, m := range manuals(c) {
		if err := os.WriteFile(filepath.Join(dir, m.name+".1"), []byte(m.troff()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// troff is the manual as the source of a man page.
func (m manual) troff() string {
	var page strings.Builder
	section := func(title, text string, verbatim bool) {
		if text = strings.Trim(text, "\n"); text == "" {
			return
		}
		text = troff(text)
		if verbatim {
			text = ".nf\n" + text + "\n.fi"
		} else {
			text = strings.ReplaceAll(text, "\n\n", "\n.PP\n")
		}
		fmt.Fprintf(&page, ".SH %s\n%s\n", title, text)
	}
	fmt.Fprintf(&page, ".TH %s 1 \"\" \"tare %s\"\n", strings.ToUpper(troff(m.name)), number)
	section("NAME", m.name+" - "+m.short, false)
	section("SYNOPSIS", m.usage, false)
	section("DESCRIPTION", m.long, false)
	list := func(title string, options []option) {
		for i, o := range options {
			if i == 0 {
				fmt.Fprintf(&page, ".SH %s\n", title)
			}
			usage := strings.ReplaceAll(o.usage, "`", "")
			if o.byDefault != "" {
				usage += " (default: " + o.byDefault + ")"
			}
			fmt.Fprintf(&page, ".TP\n%s\n%s\n", strings.TrimSpace(troff(o.name+" "+o.placeholder)), troff(usage))
		}
	}
	list("OPTIONS", m.options)
	list("EXIT STATUS", m.status)
	list("ENVIRONMENT", m.variables)
	section("EXAMPLES", m.example, true)
	var others []string
	for _, name := range slices.Concat(m.above, m.below) {
		others = append(others, name+"(1)")
	}
	section("SEE ALSO", strings.Join(others, ", "), false)
	return page.String()
}

// forTroff writes the characters that troff reads as others: a quotation mark, a hyphen or an accent.
var forTroff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// troff escapes a text so that troff prints it unchanged.
func troff(text string) string {
	lines := strings.Split(forTroff.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
