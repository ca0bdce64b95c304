package main

import (
	"fmt"
	"os"
	"path/filepath"
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

// writePages writes the man pages of a command and its subcommands into a folder.
func writePages(c *cobra.Command, dir string) error {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(c, name)), 0o644); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if err := writePages(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage is the help of a command as troff source.
func manPage(c *cobra.Command, name string) string {
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
	fmt.Fprintf(&page, ".TH %s 1 \"\" \"tare %s\"\n", strings.ToUpper(troff(name)), number)
	section("NAME", name+" - "+c.Short, false)
	section("SYNOPSIS", c.UseLine(), false)
	section("DESCRIPTION", c.Long, false)
	var flags strings.Builder
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&flags, ".TP\n%s\n%s\n", strings.TrimSpace(troff("--"+f.Name)+" "+troff(placeholder)), troff(usage))
	})
	if flags.Len() > 0 {
		fmt.Fprintf(&page, ".SH OPTIONS\n%s", flags.String())
	}
	section("EXAMPLES", c.Example, true)
	var below []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			below = append(below, strings.ReplaceAll(sub.CommandPath(), " ", "-")+"(1)")
		}
	}
	if c.HasParent() {
		below = append([]string{strings.ReplaceAll(c.Parent().CommandPath(), " ", "-") + "(1)"}, below...)
	}
	section("SEE ALSO", strings.Join(below, ", "), false)
	return page.String()
}

// troff escapes a text so that troff prints it unchanged.
func troff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
