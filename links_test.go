package tare

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced     = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	linkTarget = regexp.MustCompile(`(?m)\]\(([^()\s]+)\)|^\[[^\]]+\]: (\S+)$`)
	heading    = regexp.MustCompile(`(?m)^#{1,6}[ \t]+(.+?)[ \t]*$`)
	headingURL = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors are the fragments that lead to the headings of a Markdown file, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := strings.ToLower(headingURL.ReplaceAllString(m[1], "$1"))
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return r
			}
			return -1
		}, title)
		one := anchor
		for n := 1; all[one]; n++ {
			one = fmt.Sprintf("%s-%d", anchor, n)
		}
		all[one] = true
	}
	return all
}

// links are the targets of a Markdown file's links on this repository.
func links(text string) (all []string) {
	text = inlineCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
	for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
		to := m[1] + m[2]
		if u, err := url.Parse(to); err != nil || u.Scheme == "" {
			all = append(all, to)
		}
	}
	return all
}

// brokenLink says what is wrong with a link in the Markdown file of a path; empty if it leads somewhere.
func brokenLink(from, link string) string {
	path, anchor, _ := strings.Cut(link, "#")
	to := from
	if path != "" {
		to = filepath.Join(filepath.Dir(from), filepath.FromSlash(path))
	}
	if !filepath.IsLocal(to) {
		return "leads out of the repository"
	}
	if _, err := os.Stat(to); err != nil {
		return err.Error()
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[anchor] {
		return to + " has no heading with this anchor"
	}
	return ""
}

func TestLinksOfDocumentsResolve(t *testing.T) {
	found := 0
	eachText(t, []string{".md"}, func(path, text string) {
		for _, link := range links(text) {
			found++
			if wrong := brokenLink(path, link); wrong != "" {
				t.Errorf("%s: link (%s): %s", path, link, wrong)
			}
		}
	})
	if found == 0 {
		t.Error("no document has a link: the test checks nothing")
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	text := "# A `b` and [c](d.md)\n\n## The host’s CPUs, 50 %\n\n## Twice\n\n## Twice\n\n```\n# no heading\n[x](in-code.md)\n```\n[y\nz](README.md#a) `[q](code.md)` [w](https://example.org)\n[v]: e.md\n"
	for anchor, want := range map[string]bool{"a-b-and-c": true, "the-hosts-cpus-50-": true, "twice": true, "twice-1": true, "no-heading": false} {
		if got := anchors(text)[anchor]; got != want {
			t.Errorf("anchor %q: got %v, want %v", anchor, got, want)
		}
	}
	if got := strings.Join(links(text), " "); got != "d.md README.md#a e.md" {
		t.Errorf("got links %q, want d.md, README.md#a and e.md", got)
	}
	for link, broken := range map[string]bool{
		"README.md": false, "docs": false, "README.md#requirements": false, "README.md#no-such-heading": true,
		"no-such-file.md": true, "#requirements": false, "#no-such-heading": true, "../outside.md": true,
	} {
		if got := brokenLink("README.md", link); (got != "") != broken {
			t.Errorf("link (%s): got %q, want broken: %v", link, got, broken)
		}
	}
}

// The messages that docs/troubleshooting.md shows are those that Tare prints. "…" stands for what a message inserts.
func TestTroubleshootingShowsMessagesAsPrinted(t *testing.T) {
	var program strings.Builder
	for _, folder := range []string{"cmd", "desk", "lab", "notebook"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".tmpl" && (filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go")) {
				return err
			}
			text, err := os.ReadFile(path)
			program.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	printed := strings.ReplaceAll(program.String(), "%%", "%")
	text, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	for _, block := range fenced.FindAllString(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block, "```", "")) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "sudo ") {
				continue // a command to give
			}
			for _, label := range []string{"! ", "tare: "} {
				line = strings.TrimPrefix(line, label)
			}
			for piece := range strings.SplitSeq(line, "…") {
				if piece = strings.Trim(piece, " .,;:()"); strings.Count(piece, " ") < 2 {
					continue // too short to say anything
				}
				if pieces++; !strings.Contains(printed, piece) {
					t.Errorf("no message of the program has %q", piece)
				}
			}
		}
	}
	if pieces == 0 {
		t.Error("the page shows no message: the test checks nothing")
	}
}
