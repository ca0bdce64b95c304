package showtest

import (
	"regexp"
	"slices"
	"testing"

	"tare/desk/words"
	"tare/notebook"
)

// keyForm is the form of the key of a kind's metric: words, and arguments in parentheses.
var keyForm = regexp.MustCompile(`^[a-z0-9_]+(\([^()]+\))?$`)

// Metrics checks that each metric of a kind has a key and a caption. was are the names that metrics had in folders of format 1, with their
// keys; they are the captions too.
func Metrics(t *testing.T, kind string, all []notebook.Metric, was map[string]string) {
	t.Helper()
	var keys []string
	for name, key := range was {
		keys = append(keys, key)
		if got := notebook.MetricKey(kind, name); got != key {
			t.Errorf("%q has the key %q, want %q", name, got, key)
		}
		if got := notebook.MetricKey(kind, key); got != key {
			t.Errorf("the key %q has the key %q", key, got)
		}
		Captions(t, map[string]string{key: name})
	}
	for _, m := range all {
		if !keyForm.MatchString(m.Name) {
			t.Errorf("%q is not a key", m.Name)
		}
		if !slices.Contains(keys, m.Name) {
			t.Errorf("the metric %q has no caption here", m.Name)
		}
	}
}

// Captions checks the captions of metrics, by their keys.
func Captions(t *testing.T, want map[string]string) {
	t.Helper()
	for key, caption := range want {
		if got := words.Caption(key); got != caption {
			t.Errorf("%s has the caption %q, want %q", key, got, caption)
		}
	}
}
