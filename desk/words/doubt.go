package words

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"tare/desk/data"
	"tare/desk/model"
)

// Doubts turns doubts into sentences, each once, in their order.
func Doubts[D data.Doubt](all []D) []string {
	return once(all, func(d D) string { return Doubt(d) })
}

// once says all that there is, each text once.
func once[T any](all []T, say func(T) string) (texts []string) {
	said := map[string]bool{}
	for _, it := range all {
		if t := say(it); !said[t] {
			said[t] = true
			texts = append(texts, t)
		}
	}
	return texts
}

//go:embed doubts.tmpl
var doubtTexts string

// doubts are the sentences for doubts, each by its type.
var doubts = template.New("")

// What the sentences use. It is put in place here because a doubt may be part of another's sentence.
func init() {
	template.Must(doubts.Funcs(template.FuncMap{
		"against": against, "bounded": rangeOf, "claimed": Claimed, "comparison": Comparison, "cores": cores, "count": Count[int], "count64": Count[int64], "doubt": Doubt,
		"duration": Duration, "host": hostOf, "interval": Interval, "join": strings.Join, "missing": Missing, "name": Name, "placed": placed, "plain": Plain,
		"selector": Selector, "selectors": Selectors, "text": Text, "was": was,
		"counts":     func(all []int) string { return here("%d", all) },
		"ratios":     func(all []float64) string { return here("%.3g", all) },
		"hostFor":    func(cores, chr float64) string { return fmt.Sprintf("%.0f", cores/chr) },
		"percentage": func(share float64) string { return fmt.Sprintf("%.4g", 100*share) },
		"sizes": func(all []model.Point) []string {
			return once(all, func(p model.Point) string { return Cores(p.Cores, p.HostCores) })
		},
	}).Parse(doubtTexts))
}

// here lists some of what there is.
func here[T any](format string, all []T) string {
	const most = 6
	texts := once(all, func(v T) string { return fmt.Sprintf(format, v) })
	if len(texts) > most {
		texts = append(texts[:most], "…")
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// Doubt says a doubt in a clause that begins small and has no stop.
func Doubt(d data.Doubt) string { return sentence(fmt.Sprintf("%T", d), d) }

func sentence(name string, d data.Doubt) string {
	var b strings.Builder
	if err := doubts.ExecuteTemplate(&b, name, d); err != nil {
		panic("words: " + err.Error()) // a doubt without words is a mistake that every test of it finds
	}
	return b.String()
}

// mostFootnote is how many characters a footnote has room for: what is longer the report says.
const mostFootnote = 100

// Footnote says a doubt in a few words, for a table in a terminal.
func Footnote(d data.Doubt) string {
	if brief := fmt.Sprintf("brief %T", d); doubts.Lookup(brief) != nil {
		return sentence(brief, d)
	}
	t := Doubt(d)
	if r := []rune(t); len(r) > mostFootnote {
		cut := strings.LastIndexByte(string(r[:mostFootnote]), ' ')
		return string(r[:mostFootnote])[:max(cut, mostFootnote/2)] + " …"
	}
	return t
}

// Text says what was recorded in words.
func Text(t data.Text) string {
	if t.Differs {
		return t.First + " (the numbers differ)"
	}
	return t.First
}
