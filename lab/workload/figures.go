package workload

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tare/lab/ruler"
	"tare/notebook"
)

// ErrorsKey is the figure that counts what went wrong in a load: above zero, the trial has failed.
const ErrorsKey = "errors"

// Metric is a figure of a workload, and where its number stands in what the measured command prints on its standard output.
type Metric struct {
	notebook.Metric `yaml:",inline"`

	// From is the key of the number in the output. Empty: the time that the command takes, if match is empty too; for a secondary metric,
	// its name.
	From string `yaml:"from,omitempty" json:",omitempty"`

	// Match is a regular expression (RE2; ^ and $ match at each line) whose first group is the number. The last match counts.
	Match string `yaml:"match,omitempty" json:",omitempty"`

	// Optional says that not every trial has this secondary metric, depending on the parameters. A trial that does not print it as a number of
	// zero or more does not have it.
	Optional bool `yaml:"optional,omitempty" json:",omitempty"`

	// Warn is the warning that a trial gets if this secondary metric is above zero.
	Warn string `yaml:"warn,omitempty" json:",omitempty"`
}

// How a metric's key finds its number in an output.
const (
	OutputLine   = ""       // the last line is a JSON object of numbers
	OutputJSON   = "json"   // all of it is one JSON document, and a key a path in it: "jobs.0.read.iops"
	OutputValues = "values" // a line is "name=number", "name: number" or "name number", and what follows a blank is ignored; the last such line counts
	OutputCSV    = "csv"    // the first line names columns; the last one counts
)

// outputs are the outputs that a workload file can name.
var outputs = []string{OutputJSON, OutputValues, OutputCSV}

// directions are what a metric may say of its values.
var directions = []string{string(notebook.Higher), string(notebook.Lower), string(notebook.Neither)}

// Allowed implements yamlfile.Limited.
func (Metric) Allowed() map[string][]string { return map[string][]string{"better": directions} }

// check says what is wrong with a metric.
func (m *Metric) check() error {
	switch {
	case m.Name == "" || m.Unit == "":
		return errors.New("{name: …, unit: …} was expected")
	case m.Better != "" && !slices.Contains(directions, string(m.Better)):
		return fmt.Errorf("better: %q: must be higher, lower or none", m.Better)
	case m.From != "" && m.Match != "":
		return fmt.Errorf("%s: from and match: one of the two was expected", m.Name)
	case m.Match == "":
		return nil
	}
	re, err := m.pattern()
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if re.NumSubexp() == 0 {
		return fmt.Errorf("match: %q: a group in parentheses, which is the number, was expected", m.Match)
	}
	return nil
}

func (m *Metric) pattern() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(m.Match); err != nil { // said as it was written
		return nil, err
	}
	return regexp.Compile("(?m:" + m.Match + ")")
}

// ParseMetric reads "NAME=EXPRESSION,UNIT,higher", or lower or none: a metric that an expression finds.
func ParseMetric(text string) (m Metric, err error) {
	name, rest, ok := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	n := len(parts)
	switch {
	case !ok || strings.TrimSpace(name) == "":
		return m, fmt.Errorf("%q: a name and an equals sign were expected at its beginning, as in NAME=EXPRESSION,UNIT,higher", text)
	case n < 3:
		return m, fmt.Errorf("%q: an expression, a unit, and higher, lower or none must follow %q, as in NAME=EXPRESSION,UNIT,higher", text, name+"=")
	}
	m.Name, m.Unit = strings.TrimSpace(name), strings.TrimSpace(parts[n-2])
	m.Better, m.Match = notebook.Better(strings.TrimSpace(parts[n-1])), strings.Join(parts[:n-2], ",") // an expression may have commas
	switch {
	case !slices.Contains(directions, string(m.Better)):
		return m, fmt.Errorf("%q: %q: must end in higher or lower, whichever is better, or none where neither is", text, parts[n-1])
	case m.Unit == "":
		return m, fmt.Errorf("%q: its unit is missing before %q", text, ","+parts[n-1])
	case m.Match == "":
		return m, fmt.Errorf("%q: an expression was expected after %q", text, name+"=")
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%q: %w", text, err)
	}
	return m, nil
}

// CheckMetrics says what is wrong with the workload's metrics.
func (w *Workload) CheckMetrics() error {
	if w.Output != OutputLine && !slices.Contains(outputs, w.Output) {
		return fmt.Errorf("output: %q: %s, %s or %s was expected, or nothing where the last line is a JSON object of numbers", w.Output, OutputJSON, OutputValues, OutputCSV)
	}
	if err := w.Metric.check(); err != nil {
		return fmt.Errorf("metric: %w", err)
	}
	if w.Metric.Optional || w.Metric.Warn != "" {
		return errors.New("metric: optional: and warn: are of secondary metrics (also:); every trial was expected to have the metric")
	}
	seen := map[string]bool{w.Metric.Name: true}
	for _, m := range w.Also {
		if err := m.check(); err != nil {
			return fmt.Errorf("also: - %w", err)
		}
		if seen[m.Name] {
			return fmt.Errorf("also: - name: %q is there twice: each metric was expected to have a name of its own", m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}

// Primary is the workload's metric as a notebook has it.
func (w *Workload) Primary() notebook.Metric {
	m := w.Metric.Metric
	if m.Better == notebook.Lower { // as it is where nothing is said
		m.Better = ""
	}
	return m
}

// Secondary are the workload's secondary metrics as a notebook has them. One without a direction is compared with nothing, as one of which none is said.
func (w *Workload) Secondary() (all []notebook.Metric) {
	for _, m := range w.Also {
		if !m.Directed() {
			m.Better = ""
		}
		all = append(all, m.Metric)
	}
	return all
}

// Identity is what the workload does, for a study's hash. What could be said before directions and expressions were there is written as it was then.
func (w *Workload) Identity() []any {
	type primary struct{ Name, Unit, From string }
	parts := []any{w.Command, w.Check, w.Service, w.Load, primary{w.Metric.Name, w.Metric.Unit, w.Metric.From}, w.Secondary()}
	newer := w.Output != "" || w.Metric.Better != "" || w.Metric.Match != "" ||
		slices.ContainsFunc(w.Also, func(m Metric) bool { return m.From+m.Match != "" })
	if newer {
		parts = append(parts, w.Output, w.Metric, w.Also)
	}
	return parts
}

// prints says whether a metric is a number that the measured command prints.
func (w *Workload) prints() bool { return w.Metric.From+w.Metric.Match != "" || len(w.Also) > 0 }

// whole says whether all of the output is read for them, and not its last line alone.
func (w *Workload) whole() bool {
	return w.Output != OutputLine && w.prints() || slices.ContainsFunc(append([]Metric{w.Metric}, w.Also...), func(m Metric) bool { return m.Match != "" })
}

// Figures finds the workload's metrics in what its measured command printed. A command that printed one of them not, or no number of zero or more, or
// counted errors in its last line, has failed; cause says what was looked for and what was there. Of a workload whose metric is a time, all are empty.
func (w *Workload) Figures(r ruler.Result) (metric float64, also map[string]float64, cause *notebook.Message) {
	if !w.prints() {
		return r.Elapsed.Seconds(), nil, nil
	}
	// Of the two outputs one alone may have been cut off.
	if limit := w.outputLimit(); w.whole() && r.Truncated && !(len(r.Stdout) < limit && len(r.Stderr) == limit) {
		return 0, nil, notebook.Say("output-cut", "kib", limit>>10)
	}
	var number lookup
	get := func(m Metric, key string) (v float64, ok bool) {
		var why *notebook.Message
		if m.Match != "" {
			v, why = m.matched(r.Stdout)
		} else {
			if number == nil {
				if number, why = w.keyed(r); cause == nil {
					cause = why
				}
			}
			v, why = number(key)
		}
		if cause == nil && !m.Optional {
			cause = why
		}
		return v, why == nil
	}
	metric = r.Elapsed.Seconds()
	if w.Metric.From+w.Metric.Match != "" {
		metric, _ = get(w.Metric, w.Metric.From)
	}
	also = map[string]float64{}
	for _, m := range w.Also {
		key := m.From
		if key == "" {
			key = m.Name
		}
		if v, ok := get(m, key); ok || !m.Optional {
			also[m.Name] = v
		}
	}
	return metric, also, cause
}

// Warnings are those that figures of a trial call for.
func (w *Workload) Warnings(figures map[string]float64) (all []*notebook.Message) {
	for _, m := range w.Also {
		if v := figures[m.Name]; m.Warn != "" && v > 0 {
			all = append(all, notebook.Say("metric-warns", "warning", m.Warn, "metric", m.Name, "value", v))
		}
	}
	return all
}

// lookup is the number that an output has at a key, with why there is none.
type lookup func(key string) (v float64, why *notebook.Message)

// keyed reads an output as the workload says, and says what is wrong with it.
func (w *Workload) keyed(r ruler.Result) (lookup, *notebook.Message) {
	switch w.Output {
	case OutputJSON:
		return document(r.Stdout)
	case OutputValues:
		return values(r.Stdout), nil
	case OutputCSV:
		return table(r.Stdout)
	}
	return Printed(r)
}

var numberOK = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$`)

// possible says whether something measured can have this size: a time, a rate or a count is never negative, and what is further from 1 is an
// error of its program. The notebook's bounds are wider, so that a figure may change its unit.
func possible(v float64) bool { return v == 0 || v >= 1e-60 && v <= 1e60 }

// figure reads a number that is possible.
func figure(text string) (float64, bool) {
	if !numberOK.MatchString(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && possible(v)
}

// there is the end of an output, for a cause.
func there(out []byte) *notebook.Message {
	last := lastLine(out)
	if last == "" {
		return notebook.Say("printed-nothing")
	}
	return notebook.Say("printed-last", "line", short(last))
}

// Lengths in runes to which texts in causes are cut.
const (
	shortText = 80
	longText  = 200
)

// short is the beginning of a text, for a cause.
func short(text string) string { return fmt.Sprintf("%.*s", shortText, text) }

// matched is the number of the expression's last match.
func (m *Metric) matched(out []byte) (float64, *notebook.Message) {
	re, err := m.pattern()
	if err != nil {
		panic(err) // it was compiled when the workload was read
	}
	all := re.FindAllSubmatchIndex(out, -1)
	if all == nil {
		return 0, notebook.Say("nothing-matches", "expression", m.Match, "metric", m.Name, "there", there(out))
	}
	var text []byte
	if last := all[len(all)-1]; last[2] >= 0 {
		text = out[last[2]:last[3]]
	}
	v, ok := figure(string(bytes.TrimSpace(text)))
	if !ok {
		return 0, notebook.Say("no-number-matches", "metric", m.Name, "text", short(string(text)), "expression", m.Match)
	}
	return v, nil
}

// values looks for lines that begin with a key.
func values(out []byte) lookup {
	return func(key string) (v float64, why *notebook.Message) {
		why = notebook.Say("no-line", "key", key, "there", there(out))
		for line := range bytes.Lines(out) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), key)
			after := strings.TrimLeft(rest, " \t")
			marked := after != "" && (after[0] == '=' || after[0] == ':')
			if !ok || !marked && after == rest { // it goes on as another name
				continue
			}
			words := strings.Fields(strings.TrimLeft(after, "=:"))
			text := ""
			if len(words) > 0 {
				text = words[0]
			}
			_, none := strconv.ParseFloat(text, 64)
			switch n, ok := figure(text); { // the last line counts
			case ok:
				v, why = n, nil
			case marked || none == nil: // a sentence that begins with the key says nothing
				why = notebook.Say("no-number", "key", key, "line", short(strings.TrimSpace(string(line))))
			}
		}
		return v, why
	}
}

// table reads comma-separated values with the columns' names in the first line.
func table(out []byte) (lookup, *notebook.Message) {
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace = true
	rows, err := r.ReadAll()
	var cause *notebook.Message
	switch {
	case err != nil:
		cause = notebook.Say("no-csv", "error", err, "there", there(out))
	case len(rows) < 2:
		cause = notebook.Say("no-csv-rows", "there", there(out))
	}
	return func(key string) (float64, *notebook.Message) {
		if cause != nil {
			return 0, cause
		}
		column := slices.Index(rows[0], key)
		if column < 0 {
			return 0, notebook.Say("no-column", "key", key, "columns", fmt.Sprintf("%.*s", longText, strings.Join(rows[0], ",")))
		}
		text := rows[len(rows)-1][column]
		v, ok := figure(strings.TrimSpace(text))
		if !ok {
			return 0, notebook.Say("no-number-in-column", "key", key, "text", short(text))
		}
		return v, nil
	}, cause
}

// document reads a JSON document.
func document(out []byte) (lookup, *notebook.Message) {
	var all any
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	err := d.Decode(&all)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows the document")
		}
	}
	var cause *notebook.Message
	if err != nil {
		cause = notebook.Say("no-json", "error", short(err.Error()), "there", there(out))
	}
	return func(path string) (float64, *notebook.Message) {
		if cause != nil {
			return 0, cause
		}
		at, rest := walk(all, path)
		if n, is := at.(json.Number); is && rest == "" {
			if v, ok := figure(n.String()); ok {
				return v, nil
			}
		}
		return 0, notebook.Say("no-number-at", "key", path, "there", found(at, strings.TrimSuffix(strings.TrimSuffix(path, rest), ".")))
	}, cause
}

// walk goes along a path in a document as far as there is one. A name in it may have dots itself: the longest that is there counts.
func walk(v any, path string) (at any, rest string) {
	for path != "" {
		next, after := any(nil), ""
		ok := false
		switch v := v.(type) {
		case map[string]any:
			for end := len(path); end > 0 && !ok; end = strings.LastIndexByte(path[:end], '.') {
				if next, ok = v[path[:end]]; ok {
					after = strings.TrimPrefix(path[end:], ".")
				}
			}
		case []any:
			var index string
			index, after, _ = strings.Cut(path, ".")
			if i, err := strconv.Atoi(index); err == nil && 0 <= i && i < len(v) {
				next, ok = v[i], true
			}
		}
		if !ok {
			return v, path
		}
		v, path = next, after
	}
	return v, ""
}

// found says what is at a place of a document.
func found(v any, where string) *notebook.Message {
	if where == "" {
		where = "it"
	}
	where = short(where)
	switch v := v.(type) {
	case map[string]any:
		return notebook.Say("json-object", "where", where, "names", fmt.Sprintf("%.*s", longText, strings.Join(slices.Sorted(maps.Keys(v)), ", ")))
	case []any:
		return notebook.Say("json-list", "where", where, "items", len(v))
	}
	return notebook.Say("json-value", "where", where, "value", short(fmt.Sprint(v)))
}

// Printed reads a command's last line, a JSON object of numbers, and says what is wrong with it. number gives the number of a key, or says why there is none.
func Printed(r ruler.Result) (number func(key string) (float64, *notebook.Message), cause *notebook.Message) {
	lines := bytes.Split(bytes.TrimSpace(r.Stdout), []byte("\n"))
	last := lines[len(lines)-1]
	var all map[string]*float64 // nil: null, which is how JavaScript prints a number that is none
	if err := json.Unmarshal(last, &all); err != nil {
		cause = notebook.Say("no-json-line", "line", short(string(last)))
	} else if n, ok := all[ErrorsKey]; ok && n == nil {
		cause = notebook.Say("no-figure", "key", ErrorsKey, "line", "null")
	} else if ok && *n != 0 {
		cause = notebook.Say("requests-failed", "requests", *n, "said", lastLine(r.Stderr))
	}
	return func(key string) (float64, *notebook.Message) {
		// A figure that is none says so by its absence.
		if v := all[key]; v != nil && possible(*v) {
			return *v, nil
		}
		return 0, notebook.Say("no-figure", "key", key, "line", fmt.Sprintf("%.*s", longText, strings.ToValidUTF8(string(last), "?")))
	}, cause
}
