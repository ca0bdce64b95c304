package terminal

import (
	"fmt"
	"io"
	"strings"

	"tare/desk/compare"
	"tare/desk/words"
)

// Comparison writes the result in one sentence. Then it writes what else differs between the folders, and a line for each change, the
// largest first. Last come the equivalent and the inconclusive comparisons.
func Comparison(w io.Writer, c *compare.Comparison, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.Compared(c))
	t.list("Differences between the runs", words.Doubts(c.Differences))
	for _, s := range words.Changes(c) {
		t.list(s.Head, s.Lines)
	}
	t.line("")
	t.wrap("", words.ChangedLevel(c))
	t.block(words.ComparedNext(c))
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
	write("Differences between the runs", words.Doubts(c.Differences))
	for _, s := range words.Changes(c) {
		write(s.Head, s.Lines)
	}
	fmt.Fprintf(&b, "\n%s\n", markdown(words.ChangedLevel(c)))
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown has no character of a text mean something to Markdown or HTML.
var markdown = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "<", "&lt;", "&", "&amp;", "|", "\\|", "#", "\\#", "~", "\\~", "@", "&#64;").Replace
