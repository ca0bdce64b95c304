package terminal

import (
	"fmt"
	"io"
	"strings"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// Comparison writes what came of it in a sentence, then what else differs between the folders, then a line for each change, the largest
// first, then what makes no difference and what is open.
func Comparison(w io.Writer, c *compare.Comparison, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.Compared(c))
	t.list("What else differs", words.Doubts(c.Differences))
	for _, s := range sections(c) {
		t.list(s.head, s.lines)
	}
	t.line("")
	t.wrap("", words.ChangedLevel(c))
	return t.flush(w)
}

// Note writes the same as a short note in Markdown, for a pull request.
func Note(w io.Writer, c *compare.Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", markdown(words.Compared(c)))
	write := func(head string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n\n", head)
		for _, l := range lines {
			fmt.Fprintf(&b, "- %s\n", markdown(l))
		}
	}
	write("What else differs", words.Doubts(c.Differences))
	for _, s := range sections(c) {
		write(s.head, s.lines)
	}
	fmt.Fprintf(&b, "\n%s\n", markdown(words.ChangedLevel(c)))
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown has no character of a text mean something to Markdown or HTML.
var markdown = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "<", "&lt;", "&", "&amp;", "|", "\\|", "#", "\\#", "~", "\\~", "@", "&#64;").Replace

type section struct {
	head  string
	lines []string
}

func sections(c *compare.Comparison) (all []section) {
	for _, p := range []struct {
		head    string
		answers []stats.Answer
	}{
		{"Changed", []stats.Answer{stats.More, stats.Less}},
		{"No difference of " + words.Margin(c.Margin) + " or more", []stats.Answer{stats.Same}},
		{"Open", []stats.Answer{stats.Open}},
	} {
		var lines []string
		for _, x := range c.Found(p.answers...) {
			lines = append(lines, words.Changed(c, x))
		}
		all = append(all, section{p.head, lines})
	}
	var host []string
	for _, x := range c.Host {
		host = append(host, words.Changed(c, x))
	}
	all = append(all, section{"Bare metal itself, which is the host's change", host})
	only := func(head string, s *data.Summary, rows []*data.Row) {
		var lines []string
		for _, r := range rows {
			lines = append(lines, words.Work(r.Treatment.Workload, r.Treatment.Params)+", "+words.Label(s, r))
		}
		all = append(all, section{head, lines})
	}
	only("Only in the first folder", c.Old, c.Gone)
	only("Only in the second folder", c.New, c.Added)
	return all
}
