package origin

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                       nil,
		"  a  b\tc\nd ":          {"a", "b", "c", "d"},
		`sh -c 'a b; c "d"'`:     {"sh", "-c", `a b; c "d"`},
		`sh -c "a \"b\" \c \$x"`: {"sh", "-c", `a "b" \c $x`},
		`a\ b c\\d \'`:           {"a b", `c\d`, "'"},
		`'' ""`:                  {"", ""},
		`a''b"c"`:                {"abc"},
		`'\'`:                    {`\`},
		"a\\\nb":                 {"ab"},
		`$HOME *.go ~ # x`:       {"$HOME", "*.go", "~", "#", "x"},
		`{rate} "{seconds}"`:     {"{rate}", "{seconds}"},
	} {
		if got, err := Words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		`sh -c 'a`:                `"sh -c 'a" has a ' without a second one; write both, or \' for the character itself`,
		`sh -c "a\"`:              `"sh -c \"a\\\"" has a " without a second one; write both, or \" for the character itself`,
		`a\`:                      `"a\\" ends in a backslash: write a character after it`,
		"a\x00":                   "a zero byte is not allowed",
		strings.Repeat("a ", 1e4): "must have at most 4096 words",
	} {
		if _, err := Words(line); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v; want %s", line, err, want)
		}
	}
}

// What is quoted is one word again, whatever is in it.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", `a 'b c' "d\"e"`, `\`, `'`, "a\\\nb", "a\tb\nc", `"\$\x"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Words(line)
		if err != nil || !slices.Equal(strings.Split(line, ""), strings.Split(strings.ToValidUTF8(line, "\uFFFD"), "")) {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, `'`+strings.ReplaceAll(w, `'`, `'\''`)+`'`)
		}
		again, err := Words(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Errorf("%q: %q, and quoted %q, %v", line, words, again, err)
		}
	})
}
