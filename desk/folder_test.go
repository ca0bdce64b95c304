// Package desk has no code of its own: its tests read a whole results folder as all the reading commands do.
package desk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/claims"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/export"
	"tare/desk/page"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/desk/words"
)

// parts are the files of a results folder, in the order of FuzzFolder's arguments.
var parts = []string{"study.json", "host.json", "guests.jsonl", "sessions.jsonl", "trials.jsonl"}

// folder is what a results folder holds, by the names of its files.
type folder map[string][]byte

// sample reads one of the samples. Of its lines it takes only the first, so that a mutation is tried quickly.
func sample(t testing.TB, name string, lines int) folder {
	t.Helper()
	f := folder{}
	for _, part := range parts {
		text, err := os.ReadFile(filepath.Join("..", "cmd", "tare", "testdata", "samples", name, part))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(part, "l") {
			all := bytes.SplitAfter(text, []byte("\n"))
			text = bytes.Join(all[:min(lines, len(all))], nil)
		}
		f[part] = text
	}
	return f
}

func (f folder) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for part, text := range f {
		if err := os.WriteFile(filepath.Join(dir, part), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// has says whether a file of the folder has a text.
func (f folder) has(text string) bool {
	for _, of := range f {
		if bytes.Contains(of, []byte(text)) {
			return true
		}
	}
	return false
}

// show writes what a reading command writes of a summary. An error is a refusal.
type show func(io.Writer, *data.Summary) error

// shows are the reading commands in every format, by what they are called in a failure. Those with "text" write to a terminal.
func shows(t *testing.T, dir string) map[string]show {
	all := map[string]show{
		"summary text": func(w io.Writer, s *data.Summary) error { return terminal.Summary(w, s, terminal.Screen{Width: 80}) },
		"summary json": export.Summary,
		"explain text": func(w io.Writer, s *data.Summary) error {
			a, err := explain.From(s)
			if err != nil {
				return err
			}
			return errors.Join(terminal.Accounts(w, a, terminal.Screen{}), export.Accounts(io.Discard, a))
		},
		"claims text": func(w io.Writer, s *data.Summary) error {
			about, err := claims.About(s)
			if err != nil {
				return err
			}
			verdicts := claims.Judge(s, about)
			return errors.Join(terminal.Verdicts(w, verdicts, s.Doubts, terminal.Screen{}), export.Verdicts(io.Discard, verdicts))
		},
		"advise text": func(w io.Writer, s *data.Summary) error {
			a, err := advise.Of(s, advise.Options{Prefer: advise.Cost})
			if err != nil {
				return err
			}
			for _, format := range apply.Formats {
				if err := apply.Write(w, a, format, 0); err != nil {
					refused(t, "advise "+format, err)
				}
			}
			return errors.Join(terminal.Advice(w, a, terminal.Screen{}), export.Advice(io.Discard, a))
		},
		"compare text": func(w io.Writer, s *data.Summary) error {
			c, err := compare.From(s, s, 0.01)
			if err != nil {
				return err
			}
			return errors.Join(terminal.Comparison(w, c, terminal.Screen{}), terminal.Note(w, c), export.Comparison(io.Discard, c))
		},
		"report": func(w io.Writer, s *data.Summary) error {
			about, err := claims.About(s)
			if err != nil {
				return err
			}
			files, err := page.WriteSummary(s, filepath.Join(dir, "report"), page.Options{Claims: about})
			if err != nil {
				return err
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				return err
			}
			_, err = w.Write(text)
			return err
		},
	}
	for _, f := range export.Formats {
		all["export "+f.Name] = func(w io.Writer, _ *data.Summary) error { return export.Write(w, []string{dir}, f) }
		if !f.Binary {
			all["export text "+f.Name] = func(w io.Writer, _ *data.Summary) error { return export.Write(w, []string{dir}, f.OnTerminal()) }
		}
	}
	return all
}

// refused holds what is true of every refusal: one line that a terminal can show.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if said := words.Plain(err.Error()); said == "" || strings.Contains(said, "%!") || strings.Contains(said, "unsupported value") {
		t.Errorf("%s is refused with %.300q", what, said)
	}
}

// readAll has every reading command read a folder, and gives the refusals. None may panic, and what is for a terminal or a browser
// commands neither.
func readAll(t *testing.T, f folder) (refusals []string) {
	t.Helper()
	dir := f.write(t)
	s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All})
	if err != nil {
		refused(t, "the folder", err)
		return []string{err.Error()}
	}
	all := shows(t, dir)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		var b bytes.Buffer
		if err := all[what](&b, s); err != nil {
			refused(t, what, err)
			refusals = append(refusals, what+": "+err.Error())
		}
		if !strings.Contains(what, "text") && what != "report" {
			continue
		}
		text := b.String()
		for at, r := range text {
			if r != '\n' && r != '\t' && r != '\u00a0' && words.Hidden(r) {
				t.Errorf("%s prints the character %U: %.160q", what, r, text[max(0, at-80):])
				break
			}
		}
		for _, bad := range []string{"%!", "<no value>", "NaN", "+Inf", "-Inf"} {
			if at := strings.Index(text, bad); at >= 0 && !f.has(bad) {
				t.Errorf("%s prints %s: %.160q", what, bad, text[max(0, at-80):])
			}
		}
	}
	return refusals
}

// FuzzFolder reads a folder with arbitrary bytes. Reading takes long: without -fuzzminimizetime 1x it tries only the first input.
func FuzzFolder(f *testing.F) {
	for _, name := range []string{"timing", "interrupted", "fit"} {
		s := sample(f, name, 4)
		f.Add(s[parts[0]], s[parts[1]], s[parts[2]], s[parts[3]], s[parts[4]])
	}
	f.Fuzz(func(t *testing.T, study, host, guests, sessions, trials []byte) {
		readAll(t, folder{parts[0]: study, parts[1]: host, parts[2]: guests, parts[3]: sessions, parts[4]: trials})
	})
}

// values are the samples of FuzzValues, which each have what the others lack, and how many lines of their files are read.
var values = []struct {
	sample string
	lines  int
}{
	{"timing", 52}, {"ladder", 60}, {"traced", 24}, {"memory", 9}, {"page-faults", 14}, {"page-tables", 14}, {"network", 54}, {"starting", 19},
	{"fit", 1}, {"metrics", 24}, {"cloud", 24}, {"density", 60}, {"chr", 24},
}

// FuzzValues reads a folder that Tare wrote, in which two values of one file are others of the same type.
func FuzzValues(f *testing.F) {
	for i := range values {
		f.Add(uint8(i), uint8(4), uint32(7), uint32(11), "\x1b]0;evil\a", -1.0)
	}
	for part := range parts {
		f.Add(uint8(0), uint8(part), uint32(3), uint32(40), "", 1e308)
	}
	f.Add(uint8(0), uint8(4), uint32(99), uint32(100), "", 1e308) // a value, whose ratio to bare metal was printed as +Inf
	f.Fuzz(func(t *testing.T, which, part uint8, one, other uint32, text string, number float64) {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return // neither is JSON
		}
		from := values[int(which)%len(values)]
		s, name := sample(t, from.sample, from.lines), parts[int(part)%len(parts)]
		changed, err := replaced(s[name], text, number, one, other)
		if err != nil {
			t.Fatal(err)
		}
		s[name] = changed
		readAll(t, s)
	})
}

// replaced is a file of JSON values in which those at the given places, counted round, are others: a text, a number, nothing instead of
// what has parts.
func replaced(file []byte, text string, number float64, at ...uint32) ([]byte, error) {
	var all []any
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	var places []func()
	each(all, func(v any, set func(any)) {
		places = append(places, func() {
			switch v := v.(type) {
			case string:
				set(text)
			case json.Number:
				set(json.Number(strconv.FormatFloat(number, 'g', -1, 64)))
				if _, err := v.Int64(); err == nil && math.Abs(number) < 1<<63 {
					set(int64(number))
				}
			case bool:
				set(!v)
			default:
				set(nil)
			}
		})
	})
	for _, n := range at {
		if len(places) > 0 {
			places[int(n)%len(places)]()
		}
	}
	var b bytes.Buffer
	for _, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.Bytes(), nil
}

// each gives every value below v with what sets it, in a fixed order.
func each(v any, visit func(v any, set func(any))) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			each(v[i], visit)
			visit(v[i], func(to any) { v[i] = to })
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(v[key], visit)
			visit(v[key], func(to any) { v[key] = to })
		}
	}
}

// Each of the samples is read by every command; what a command refuses is a study that it is not for.
func TestSamplesAreWhole(t *testing.T) {
	for _, v := range values {
		for _, r := range readAll(t, sample(t, v.sample, v.lines)) {
			if !strings.HasPrefix(r, "explain text: ") || v.sample == "traced" {
				t.Errorf("%s: %s", v.sample, r)
			}
		}
	}
}
