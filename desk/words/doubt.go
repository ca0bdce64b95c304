package words

import (
	"cmp"
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/predict"
	"tare/notebook"
)

// Doubts turns doubts into sentences, each once, in their order.
func Doubts[D data.Doubt](all []D) []string {
	return data.Distinct(all, func(d D) string { return Doubt(d) })
}

//go:embed doubts.tmpl claims.tmpl
var texts embed.FS

// sentences are those for doubts and some other values, each by its type. They are read when the first is written, which most
// commands never do.
var (
	sentences     = template.New("")
	readSentences sync.Once
)

func parseSentences() {
	template.Must(sentences.Funcs(template.FuncMap{
		"against": against, "caption": Caption, "claimed": Claimed, "cores": cores, "count": Count[int], "count64": Count[int64], "doubt": Doubt,
		"dec": func(n int) int { return n - 1 }, "duration": Duration, "host": hostOf, "interval": Interval, "join": strings.Join, "label": notebook.Label, "measured": Measured, "message": Message, "missing": Missing,
		"name": Name, "plain": Plain, "quantity": Quantity, "selector": Selector, "selectors": Selectors, "text": Text, "was": was,
		"printable":  func(m *notebook.Message) string { return data.Printable(Message(m)) },
		"counts":     func(all []int) string { return here("%d", all) },
		"setting":    func(name string) string { return settingNames[name] },
		"ratios":     func(all []float64) string { return here("%.3g", all) },
		"hostFor":    func(cores, chr float64) string { return fmt.Sprintf("%.0f", cores/chr) },
		"percentage": func(share float64) string { return fmt.Sprintf("%.4g", 100*share) },
		"signed":     signed,
		"tenth":      func(of int) string { return Digits(10/float64(max(of, 1)), 2) },
		"times":      func(factor float64) string { return Digits(factor, 2) },
		"whole":      func(share float64) string { return Percent(share, 0) },
		"sizes": func(all []model.Point) []string {
			return data.Distinct(all, func(p model.Point) string { return Cores(p.Cores, p.HostCores) })
		},
		"event":       EventName,
		"environment": func(t notebook.Treatment) string { return Short(t, false) },
		"tracers":     func() string { return strings.Join(predict.Tracers, ",") },
		"either":      func(v claims.Values) string { return strings.Join(v, " or ") },
	}).ParseFS(texts, "*.tmpl"))
}

// here lists some of what there is.
func here[T any](format string, all []T) string {
	const most = 6
	texts := data.Distinct(all, func(v T) string { return fmt.Sprintf(format, v) })
	if len(texts) > most {
		texts = append(texts[:most], "…")
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// Doubt says a doubt in a clause that begins small and has no stop. That of a kind of study says itself.
func Doubt(d data.Doubt) string {
	if of, says := d.(interface{ Say() string }); says {
		return of.Say()
	}
	return say(d)
}

// say says a value by the sentence for its type.
func say(v any) string { return sentence(fmt.Sprintf("%T", v), v) }

func sentence(name string, v any) string {
	readSentences.Do(parseSentences)
	var b strings.Builder
	if err := sentences.ExecuteTemplate(&b, name, v); err != nil {
		panic("words: " + err.Error()) // a value without words is a mistake that every test of it finds
	}
	return b.String()
}

// mostFootnote is how many characters a footnote may have. No sentence is as long: what a failed program printed can be.
const mostFootnote = 400

// Footnote says a doubt in a few words, for a table in a terminal.
func Footnote(d data.Doubt) string {
	t := Doubt(d)
	if brief := fmt.Sprintf("brief %T", d); sentences.Lookup(brief) != nil {
		return sentence(brief, d)
	}
	if r := []rune(t); len(r) > mostFootnote {
		cut := strings.LastIndexByte(string(r[:mostFootnote]), ' ')
		return string(r[:mostFootnote])[:max(cut, mostFootnote/2)] + " … (the report has all of it)"
	}
	return t
}
