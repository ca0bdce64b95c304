package tare

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unplain are constructions that a native engineer would not write, and what to write instead.
var unplain = []struct {
	text    *regexp.Regexp
	instead string
	unless  *regexp.Regexp // matches the text if it is plain English after all; nil: never
}{
	{regexp.MustCompile(`(?i)\bw(as|ere) expected\b`), `say what is wrong, then what is allowed: "must be …"`, nil},
	{regexp.MustCompile(`(?i)\b(of|in|by|from|with|to) which (it is|there (is|are)|less|more|no|nothing)\b`), "start a new sentence and name the subject", nil},
	{regexp.MustCompile(`(?i)\bit is (said|told|seen|asked|shown) (that|what|which|whether|how)\b`), "use the active voice: who reports what", nil},
	{regexp.MustCompile(`(^|[.;:] )(So|Neither|Nor) (is|are|do|does|has|have|was|were)\b`), "repeat the subject and the verb", nil},
	{regexp.MustCompile(`(?i)\bbeside (it|them|that|this|each|others?|what|one)\b`), `"next to", "as well as", "compared with"`, nil},
	{regexp.MustCompile(`(?i)\bas (long|many|much|wide|large|often) again\b`), "give the factor: twice as many", nil},
	{regexp.MustCompile(`(?i)\b(that|those) of (that|those|it|them|one|others)\b`), "repeat the noun", nil},
	{regexp.MustCompile(`(?i)\b(two|both) would [a-z]+ each other\b`), "say the effect: would disturb each other", nil},
	{regexp.MustCompile(`(?i)\b(held against|made good|put beside|booked to|made otherwise)\b`), "compared with, corrected, next to, attributed to", nil},
	{regexp.MustCompile(`(?i)\b(there )?is no [a-z]+`), `"is not a …"`, regexp.MustCompile(`(?i)^there|no (longer|more|less|better|worse|other|way|need|such|(farth|larg|small|long|short|wid|great|high|low|slow|fast)er)$`)},
	{regexp.MustCompile(`(?i)(\b(tell|tells|told)\b.* |\b[a-z]+ )?\b(alone|apart|meanwhile|likewise)[.;,]?$`), `"only", "separately", "at the same time", or drop it`, regexp.MustCompile(`(?i)^(tells?|told) .*apart|^(runs?|left|leaves?|stands?) alone|^(seconds|minutes) apart`)},
	{regexp.MustCompile(`(?i)\b(is|are|was|were) there (to|that|which|before|already|beside)\b`), `"exists", "is present", or name what it is for`, nil},
	{regexp.MustCompile(`(?i)\bwhat (it|they|is) (has|have|takes?|made) of\b|\bmakes? of (it|them|nothing)\b`), "say what was done, or name the part", nil},
	{regexp.MustCompile(`(?i)\b(is|are) (said|told|asked) (of|what|which|beside)\b`), "use the active voice: who reports what", nil},
	{regexp.MustCompile(`\b(upbringing|keepCompany|metAtOnce|inEarnest|begunGuest)\b`), "use the word of the field", nil},
}

// longSentence is the greatest number of words in a sentence.
const longSentence = 32

// notPlainYet is how many places in a folder stay as they are: sample output, tables of names, the kernel's formats and command lines. A
// folder that is not here has none. Never raise a number for prose.
var notPlainYet = map[string]int{
	"desk/model":                   1,
	"desk/terminal":                3,
	"lab/cgroup":                   1,
	"lab/engine/conformance/probe": 1,
	"lab/engine/qemu":              1,
	"lab/proc":                     1,
	"lab/trace":                    1,
}

var (
	goComment  = regexp.MustCompile(`(?:^|\s)(?://|\*)\s+(.*)$`)
	goString   = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	markup     = regexp.MustCompile("`[^`]*`|<[^>]*>|\\{\\{.*?\\}\\}|https?://\\S+|\\]\\([^)]*\\)")
	yamlText   = regexp.MustCompile(`#\s*(.*)$|:\s*"?([^"#]{20,})"?\s*$`)
	sentenceAt = regexp.MustCompile(`[.!?:;]\s+`)
)

// prose is the English in a line of a file; empty if there is none.
func prose(path, line string) string {
	switch filepath.Ext(path) {
	case ".md", ".tmpl", ".gohtml":
		return strings.TrimSpace(markup.ReplaceAllString(line, "x"))
	case ".yaml":
		if m := yamlText.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1] + m[2])
		}
	case ".go", ".c", ".h", ".js":
		var all []string
		if m := goComment.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
		for _, m := range goString.FindAllStringSubmatch(line, -1) {
			if len(strings.Fields(m[1])) >= 4 {
				all = append(all, m[1])
			}
		}
		return strings.Join(all, " . ")
	}
	return ""
}

// foreign lists the places of a file that are not plain English.
func foreign(path, text string) (all []string) {
	block, began, fence, joined := "", 0, false, false
	sentences := func() {
		for _, s := range sentenceAt.Split(block, -1) {
			if n := len(strings.Fields(s)); n > longSentence {
				all = append(all, fmt.Sprintf("%s:%d: %d words in a sentence: %.80s", path, began, n, s))
			}
		}
		block = ""
	}
	for i, line := range strings.Split(text, "\n") {
		if filepath.Ext(path) == ".md" {
			if strings.HasPrefix(line, "```") {
				fence = !fence
			}
			if fence || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), "|") {
				line = ""
			}
		}
		p := prose(path, line)
		code := strings.TrimSpace(line)
		comment := strings.HasPrefix(code, "//") || strings.HasPrefix(code, "*") || strings.HasPrefix(code, "/*")
		if filepath.Ext(path) == ".go" && !comment && !joined { // a column of comments, or a table of strings, is not one sentence
			sentences()
		}
		joined = !comment && strings.HasSuffix(code, "+")
		if p == "" || filepath.Ext(path) != ".md" && filepath.Ext(path) != ".go" {
			sentences()
		}
		for _, rule := range unplain {
			for _, m := range rule.text.FindAllString(p, -1) {
				if rule.unless == nil || !rule.unless.MatchString(m) {
					all = append(all, fmt.Sprintf("%s:%d: %q: %s", path, i+1, m, rule.instead))
					break
				}
			}
		}
		if block == "" {
			began = i + 1
		}
		block = strings.TrimSpace(block + " " + p)
	}
	sentences()
	return all
}

// eachText calls do for each file of the project with one of the extensions.
func eachText(t *testing.T, extensions []string, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name()[0] == '.' || slices.Contains([]string{"bin", "dist", "out"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestForeignTextIsFound(t *testing.T) {
	for text, want := range map[string]int{
		"// A list was expected.":                                                               1,
		"x := \"a list of words: was expected\"":                                                1,
		"// Tare removes the container.":                                                        0,
		"// What is no VM has none.":                                                            1,
		"// There is no VM; 2 is no more than 3.":                                               0,
		"// It counts processes of the guest alone.":                                            1,
		"// Symbols tell the engines of a platform apart.":                                      0,
		"// The workload runs alone.":                                                           0,
		"// A row is there to be compared.":                                                     1,
		"// The guest and what it has of the host's memory.":                                    1,
		"// What is said of a row, and its caption.":                                            1,
		"// " + strings.Repeat("word ", 33):                                                     1,
		"// " + strings.Repeat("word ", 20) + "\n// " + strings.Repeat("word ", 20):             1,
		"// " + strings.Repeat("word ", 20) + ".\n// " + strings.Repeat("word ", 20):            0,
		"A int // " + strings.Repeat("word ", 20) + "\nB int // " + strings.Repeat("word ", 20): 0,
		"f(\"" + strings.Repeat("word ", 20) + "\",\n\"" + strings.Repeat("word ", 20) + "\")":  0,
		"f(\"" + strings.Repeat("word ", 20) + "\"+\n\"" + strings.Repeat("word ", 20) + "\")":  1,
	} {
		if got := foreign("a.go", text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

// No folder has more places that are not plain English than before.
func TestTextIsPlain(t *testing.T) {
	found := map[string][]string{}
	eachText(t, []string{".go", ".md", ".tmpl", ".gohtml", ".yaml", ".c", ".h", ".js"}, func(path, text string) {
		folder := filepath.Dir(path)
		if path == "plain_test.go" || slices.Contains(strings.Split(folder, "/"), "testdata") {
			return
		}
		found[folder] = append(found[folder], foreign(path, text)...)
	})
	for folder, places := range found {
		switch most := notPlainYet[folder]; {
		case len(places) > most:
			t.Errorf("%s: %d places are not plain English, at most %d may be:\n%s", folder, len(places), most, strings.Join(places, "\n"))
		case len(places) < most:
			t.Errorf("%s: only %d places are not plain English any more: lower its number in notPlainYet from %d", folder, len(places), most)
		}
	}
}
