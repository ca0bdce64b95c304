package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text of unknown origin fit to be shown: control and formatting characters, which could hide or
// reorder what stands around them or make an SVG file unreadable, become spaces.
func Plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if Hidden(r) {
			return ' '
		}
		return r
	}, s))
}

// Hidden says whether a character is a control or formatting character, or none at all.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) || r == 0xFFFE || r == 0xFFFF
}

// PlainLines is Plain for text of several lines; the lines and their indentation stay.
func PlainLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		// Indentation carries meaning in YAML.
		body := strings.TrimLeft(l, " ")
		lines[i] = l[:len(l)-len(body)] + Plain(body)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// Tight keeps a percentage, and what stands after ±, on one line.
func Tight(s string) string { return tight.Replace(s) }

var tight = strings.NewReplacer(" %", "\u00a0%", "± ", "±\u00a0")

// Sentence starts a text with a capital and ends it with a full stop, where it has no end of its own.
func Sentence(s string) string {
	s = Tight(Plain(s))
	if s == "" {
		return s
	}
	s = Capital(s)
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// Stop ends a text with a full stop and leaves its beginning, which may be a name such as "runc", as it is.
func Stop(s string) string {
	s = Tight(Plain(s))
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// smallNames are programs whose makers write them so at the start of a sentence, too.
var smallNames = []string{"gVisor", "runc", "crun", "containerd"}

// Capital starts a text with a capital letter.
func Capital(s string) string {
	first, rest, _ := strings.Cut(s, " ")
	if slices.Contains(smallNames, strings.TrimRight(first, ".,:;")) || strings.HasPrefix(rest, "(") && strings.Contains(rest, "=") { // a workload with its parameters
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
