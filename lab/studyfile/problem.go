package studyfile

import "strings"

// problem is an error in a study. path has the keys and indexes that lead to it from the top of the file.
type problem struct {
	path []any
	text string
	line int // line of the file, if it is known without the path
}

// at prepends keys to the problem's path.
func (p *problem) at(above ...any) *problem {
	p.path = append(above, p.path...)
	return p
}

func wrong(text string, path ...any) *problem { return &problem{path: path, text: text} }

// oneOf lists alternatives: "a, b or c".
func oneOf(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
