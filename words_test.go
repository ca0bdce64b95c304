package tare

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wordless are the folders without English, with all folders below them. hasWords gives the exceptions.
var wordless = []string{"notebook", "desk"}

// hasWords reports whether a file may have sentences: the files of desk/words, the words file of a kind of study, and errors about claims files.
func hasWords(path string) bool {
	return strings.HasPrefix(path, "desk/words/") || strings.HasPrefix(path, "desk/show/") && filepath.Base(path) == "words.go" || path == "desk/claims/parse.go"
}

// mostWords is how many words a label may have; a text of more is a sentence.
const mostWords = 4

// className is a reason why a text may stay where it is.
const className = "a class of samples is named where its functions are listed"

// permittedTexts are long texts outside desk/words. The names that metrics had in earlier folders need no permission.
var permittedTexts = map[string]string{
	"Go's garbage collection and allocation": className,
	"pipes and sockets of the host":          className,
}

var (
	verbsAndMarkup = regexp.MustCompile(`%[-+# 0]*[\d.*]*[a-zA-Z%]|\{\{[^{}]*\}\}|<[^<>]*>|&[a-z]+;`)
	oneWord        = regexp.MustCompile(`^(a|A|I|\p{L}[\p{L}’'-]*\p{L})$`)
)

// wordCount is the number of English words in a text, without markup, verbs of fmt, numbers and paths.
func wordCount(text string) (n int) {
	for _, field := range strings.Fields(verbsAndMarkup.ReplaceAllString(text, " ")) {
		if oneWord.MatchString(strings.Trim(field, `.,;:!?()[]"“”±–…`)) {
			n++
		}
	}
	return n
}

func TestWordCount(t *testing.T) {
	for text, want := range map[string]int{
		"":                                     0,
		"the host’s own CPU time":              5,
		"%d of %s failed; they are in no mean": 7,
		"M 10 20 L 30.5 40 Z":                  0,
		"/sys/fs/cgroup cpu.max 8/2GB":         0,
		"<td class=\"n wide\">{{.Mean | of the trial}}</td>": 0,
		"Solid: the 95&nbsp;% interval excludes 0.":          4,
		"a question – or I ask":                              5,
	} {
		if got := wordCount(text); got != want {
			t.Errorf("%q has %d words, want %d", text, got, want)
		}
	}
}

// joined is the text that an expression joins from literals; empty if it has other operands.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return strings.TrimSpace(joined(e.X) + " " + joined(e.Y))
		}
	case *ast.ParenExpr:
		return joined(e.X)
	}
	return ""
}

// called is what a call or a composite literal names: "fmt.Errorf", "panic", "notebook.Metric".
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return called(e.X) + "." + e.Sel.Name
	}
	return ""
}

// longTexts calls report with each text of a Go file that is longer than a label. It leaves out errors, which are for the user of a command, and
// the names that metrics had in earlier folders.
func longTexts(f *ast.File, report func(n ast.Node, text string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			switch called(n.Fun) {
			case "errors.New", "fmt.Errorf", "panic":
				return false
			}
		case *ast.CompositeLit:
			return called(n.Type) != "notebook.MetricNames"
		case *ast.Field:
			return n.Tag == nil
		case ast.Expr:
			if text := joined(n); wordCount(text) > mostWords {
				report(n, text)
			}
		}
		return true
	})
}

// Reports, figures and terminals show values and texts. All texts are in desk/words, where a reader finds them in one place.
func TestEnglishIsInWords(t *testing.T) {
	used := map[string]bool{}
	for _, folder := range wordless {
		files := sources(t, folder)
		for _, s := range files {
			if s.test || hasWords(s.path) || strings.HasSuffix(filepath.Dir(s.path), "test") {
				continue
			}
			longTexts(s.File, func(n ast.Node, text string) {
				if used[text] = true; permittedTexts[text] == "" {
					t.Errorf("%s: %q belongs into desk/words", s.at(n), text)
				}
			})
		}
	}
	for text := range permittedTexts {
		if !used[text] {
			t.Errorf("%q is nowhere: it needs no permission", text)
		}
	}
}

var (
	inlineTags = regexp.MustCompile(`</?(code|em|small|span|strong|sub|sup|var)\b[^<>]*>`)
	otherTags  = regexp.MustCompile(`<[^<>]*>`)
	actions    = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
)

// pageTexts are the texts of an HTML template: between tags, and in quotes within tags and actions.
func pageTexts(source string) (all []string) {
	for _, action := range actions.FindAllString(source, -1) {
		all = append(all, quoted.FindAllString(action, -1)...)
	}
	source = actions.ReplaceAllString(source, " … ")
	for _, tag := range otherTags.FindAllString(source, -1) {
		all = append(all, quoted.FindAllString(tag, -1)...)
	}
	return append(all, otherTags.Split(inlineTags.ReplaceAllString(source, " "), -1)...)
}

func TestPagesHaveNoSentence(t *testing.T) {
	pages, err := filepath.Glob("desk/page/*.gohtml")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range pageTexts(string(source)) {
			if wordCount(text) > mostWords {
				t.Errorf("%s: %q belongs into desk/words/report.gohtml", page, strings.Join(strings.Fields(text), " "))
			}
		}
	}
}
