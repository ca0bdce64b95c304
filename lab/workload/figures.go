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

// ErrorsKey is the figure that counts the errors of a load. A trial with errors has failed.
const ErrorsKey = "errors"

// Metric is a figure of a workload. It says where its number is in the standard output of the measured command.
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

// These are the formats of an output, which say how a metric's key finds its number.
const (
	OutputLine   = ""       // the last line is a JSON object of numbers
	OutputJSON   = "json"   // the output is one JSON document, and a key is a path in it: "jobs.0.read.iops"
	OutputValues = "values" // a line is "name=number", "name: number" or "name number", and anything after a further blank is ignored; the last such line counts
	OutputCSV    = "csv"    // the first line names columns; the last one counts
)

// outputs are the outputs that a workload file can name.
var outputs = []string{OutputJSON, OutputValues, OutputCSV}

// directions are the values of better in a metric.
var directions = []string{string(notebook.Higher), string(notebook.Lower), string(notebook.Neither)}

// Allowed implements yamlfile.Limited.
func (Metric) Allowed() map[string][]string { return map[string][]string{"better": directions} }

// check returns an error if a metric is wrong.
func (m *Metric) check() error {
	switch {
	case m.Name == "" || m.Unit == "":
		return errors.New("must have a name and a unit: {name: …, unit: …}")
	case m.Better != "" && !slices.Contains(directions, string(m.Better)):
		return fmt.Errorf("better: %q: must be higher, lower or none", m.Better)
	case m.From != "" && m.Match != "":
		return fmt.Errorf("%s: from and match: leave out one of the two", m.Name)
	case m.Match == "":
		return nil
	}
	re, err := m.pattern()
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if re.NumSubexp() == 0 {
		return fmt.Errorf("match: %q: must have a group in parentheses around the number", m.Match)
	}
	return nil
}

func (m *Metric) pattern() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(m.Match); err != nil { // the error shows the expression as the user wrote it
		return nil, err
	}
	return regexp.Compile("(?m:" + m.Match + ")")
}

// ParseMetric reads a metric that an expression finds: "NAME=EXPRESSION,UNIT,higher", or with lower or none instead of higher.
func ParseMetric(text string) (m Metric, err error) {
	name, rest, ok := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	n := len(parts)
	switch {
	case !ok || strings.TrimSpace(name) == "":
		return m, fmt.Errorf("%q: must begin with a name and an equals sign, as in NAME=EXPRESSION,UNIT,higher", text)
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
		return m, fmt.Errorf("%q: the expression is missing after %q", text, name+"=")
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%q: %w", text, err)
	}
	return m, nil
}

// CheckMetrics returns an error if the workload's metrics are wrong.
func (w *Workload) CheckMetrics() error {
	if w.Output != OutputLine && !slices.Contains(outputs, w.Output) {
		return fmt.Errorf("output: %q: must be %s, %s or %s; leave it out where the last line is a JSON object of numbers", w.Output, OutputJSON, OutputValues, OutputCSV)
	}
	if err := w.Metric.check(); err != nil {
		return fmt.Errorf("metric: %w", err)
	}
	if w.Metric.Optional || w.Metric.Warn != "" {
		return errors.New("metric: optional: and warn: are only for secondary metrics (also:), because every trial must have this metric")
	}
	seen := map[string]bool{w.Metric.Name: true}
	for _, m := range w.Also {
		if err := m.check(); err != nil {
			return fmt.Errorf("also: - %w", err)
		}
		if seen[m.Name] {
			return fmt.Errorf("also: - name: %q is used twice: each metric must have its own name", m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}

// Primary is the workload's primary metric for a notebook.
func (w *Workload) Primary() notebook.Metric {
	m := w.Metric.Metric
	if m.Better == notebook.Lower { // lower is the default
		m.Better = ""
	}
	return m
}

// Secondary are the workload's secondary metrics for a notebook. A metric without a direction is not compared, as if better were missing.
func (w *Workload) Secondary() (all []notebook.Metric) {
	for _, m := range w.Also {
		if !m.Directed() {
			m.Better = ""
		}
		all = append(all, m.Metric)
	}
	return all
}

// Identity is the part of a study's hash that says what the workload does. A workload without directions and expressions keeps the hash that it
// had before they existed.
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

// RecordVariable gives a traced load the path of RecordFile in its scratch folder. The load may record in this file when each of its requests began and
// ended (see replay.ReadOperations).
const (
	RecordVariable = "TARE_REQUESTS"
	RecordFile     = "requests"
)

// Times reports whether the metric is the mean time of operations, such as requests, that the command or the load itself times: it prints a time
// and, among the secondary metrics, its 99th percentile, p99.
func (w *Workload) Times() bool {
	return w.Metric.From+w.Metric.Match != "" && w.Metric.Unit == "s" && slices.ContainsFunc(w.Also, func(m Metric) bool { return m.Name == "p99" && m.Unit == "s" })
}

// prints reports whether a metric is a number that the measured command prints.
func (w *Workload) prints() bool { return w.Metric.From+w.Metric.Match != "" || len(w.Also) > 0 }

// whole reports whether the metrics need the whole output, and not only its last line.
func (w *Workload) whole() bool {
	return w.Output != OutputLine && w.prints() || slices.ContainsFunc(append([]Metric{w.Metric}, w.Also...), func(m Metric) bool { return m.Match != "" })
}

// Figures finds the workload's metrics in the output of its measured command. The trial failed if a metric is missing or is not a number of zero or
// more, or if the last line counts errors. cause then says what Tare looked for and what the output has. If the metric is the run time and there
// are no secondary metrics, metric is that time, in seconds.
func (w *Workload) Figures(r ruler.Result) (metric float64, also map[string]float64, cause *notebook.Message) {
	if !w.prints() {
		return r.Elapsed.Seconds(), nil, nil
	}
	// Only one of the two outputs may have been cut off.
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

// Warnings are the warnings that a trial's figures cause.
func (w *Workload) Warnings(figures map[string]float64) (all []*notebook.Message) {
	for _, m := range w.Also {
		if v := figures[m.Name]; m.Warn != "" && v > 0 {
			all = append(all, notebook.Say("metric-warns", "warning", m.Warn, "metric", m.Name, "value", v))
		}
	}
	return all
}

// lookup returns the number that an output has for a key, or why it has none.
type lookup func(key string) (v float64, why *notebook.Message)

// keyed reads an output in the workload's format. The message says what is wrong with the output.
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

// possible reports whether a measured value can have this size. Times, rates and counts are never negative, and a value outside these limits is
// an error of its program. The notebook's limits are wider, so a figure may change its unit.
func possible(v float64) bool { return v == 0 || v >= 1e-60 && v <= 1e60 }

// figure reads a number. ok is false if the number is not possible.
func figure(text string) (float64, bool) {
	if !numberOK.MatchString(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && possible(v)
}

// there describes the end of an output, for a cause.
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

// matched is the number in the expression's last match.
func (m *Metric) matched(out []byte) (float64, *notebook.Message) {
	re, err := m.pattern()
	if err != nil {
		panic(err) // Read has compiled it
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

// values finds numbers in lines that begin with a key.
func values(out []byte) lookup {
	return func(key string) (v float64, why *notebook.Message) {
		why = notebook.Say("no-line", "key", key, "there", there(out))
		for line := range bytes.Lines(out) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), key)
			after := strings.TrimLeft(rest, " \t")
			marked := after != "" && (after[0] == '=' || after[0] == ':')
			if !ok || !marked && after == rest { // the line has a longer name
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
			case marked || none == nil: // a sentence that begins with the key does not count
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

// walk follows a path in a document as far as it exists. A name in the document may have dots: walk takes the longest name that exists.
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

// found describes what a document has at a place.
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

// Printed reads a command's last line, which is a JSON object of numbers. cause says what is wrong with the line. number returns the number of a
// key, or why there is none.
func Printed(r ruler.Result) (number func(key string) (float64, *notebook.Message), cause *notebook.Message) {
	lines := bytes.Split(bytes.TrimSpace(r.Stdout), []byte("\n"))
	last := lines[len(lines)-1]
	var all map[string]*float64 // nil: null, which JavaScript prints for NaN
	if err := json.Unmarshal(last, &all); err != nil {
		cause = notebook.Say("no-json-line", "line", short(string(last)))
	} else if n, ok := all[ErrorsKey]; ok && n == nil {
		cause = notebook.Say("no-figure", "key", ErrorsKey, "line", "null")
	} else if ok && *n != 0 {
		cause = notebook.Say("requests-failed", "requests", *n, "said", lastLine(r.Stderr))
	}
	return func(key string) (float64, *notebook.Message) {
		// A figure that is null counts as missing.
		if v := all[key]; v != nil && possible(*v) {
			return *v, nil
		}
		return 0, notebook.Say("no-figure", "key", key, "line", fmt.Sprintf("%.*s", longText, strings.ToValidUTF8(string(last), "?")))
	}, cause
}
