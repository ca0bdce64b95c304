//go:build linux

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tare/internal/golden"
)

var indentedLines = regexp.MustCompile(`(?m)(?:^  .*\n?)+`)

// markdown is the manual as a section of docs/reference.md.
func (m manual) markdown() string {
	var page strings.Builder
	fmt.Fprintf(&page, "\n## %s\n\n%s.\n\n`%s`\n", strings.ReplaceAll(m.name, "-", " "), m.short, m.usage)
	if m.long != "" {
		text := strings.NewReplacer("*", `\*`, "<", `\<`, "_", `\_`).Replace(strings.TrimSpace(m.long))
		text = indentedLines.ReplaceAllStringFunc(text, func(list string) string { return "\n```\n" + dedent(list) + "\n```\n" })
		fmt.Fprintf(&page, "\n%s\n", strings.TrimSpace(text))
	}
	for i, o := range m.options {
		if i == 0 {
			page.WriteString("\n| flag | meaning | default |\n|---|---|---|\n")
		}
		cell := strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`)
		name := strings.TrimSpace(o.name + " " + strings.ReplaceAll(o.placeholder, "|", `\|`))
		byDefault := o.byDefault
		if byDefault != "" {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", name, cell.Replace(o.usage), byDefault)
	}
	if m.example != "" {
		fmt.Fprintf(&page, "\n```\n%s\n```\n", dedent(m.example))
	}
	return page.String()
}

// dedent removes two blanks from the beginning of each line.
func dedent(text string) string {
	return strings.TrimRight(regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, ""), "\n")
}

// TestReferenceIsCurrent: docs/reference.md has the help of every command, as the man pages have it. With -update the test writes the page.
func TestReferenceIsCurrent(t *testing.T) {
	all := manuals(rootCommand())
	var page strings.Builder
	page.WriteString("# Commands\n\nThe help of every command, with all flags. `tare COMMAND --help` and the man pages have the same text.\n" +
		"[What all commands have in common](commands.md) has the exit statuses.\n\n| command | what it does |\n|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&page, "| [%s](#%s) | %s |\n", strings.ReplaceAll(m.name, "-", " "), m.name, m.short)
	}
	for _, m := range all {
		page.WriteString(m.markdown())
	}
	page.WriteString("\n---\n\n`make generate` writes this page from `cmd/tare`.\n")
	golden.Check(t, "../../../docs/reference.md", []byte(page.String()))
}
