package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ConfigOf returns the study's Config as that of the named kind; nil if the study is of another kind.
func ConfigOf[T any](s Study, kind string) (*T, error) {
	if s.Kind != kind {
		return nil, nil
	}
	switch c := s.Config.(type) {
	case *T:
		return c, nil
	case json.RawMessage:
		var v T
		if err := json.Unmarshal(c, &v); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", studyFile, kind, err)
		}
		return &v, nil
	}
	return nil, fmt.Errorf("the study's %s is a %T", kind, s.Config)
}

// SeenOf returns the trial's Seen as a T; the zero value if the trial recorded nothing.
func SeenOf[T any](t *Trial) (v T, err error) {
	switch s := t.Seen.(type) {
	case nil:
		return v, nil
	case T:
		return s, nil
	case json.RawMessage:
		if err := json.Unmarshal(s, &v); err != nil {
			return v, err
		}
		return v, nil
	}
	return v, fmt.Errorf("the trial recorded a %T", t.Seen)
}

// MarshalJSON writes the study and the config of its kind.
func (s Study) MarshalJSON() ([]byte, error) {
	type plain Study
	if s.Kind == "" {
		return json.Marshal(plain(s))
	}
	if slices.Contains(studyKeys, s.Kind) {
		return nil, fmt.Errorf("a study cannot be of the kind %q: the name is taken", s.Kind)
	}
	return withKeys(plain(s), map[string]any{s.Kind: s.Config})
}

// UnmarshalJSON reads what MarshalJSON writes. Earlier versions did not write a study's kind; it then follows from the config that
// is present.
func (s *Study) UnmarshalJSON(data []byte) error {
	type plain Study
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	more, err := otherKeys(data, studyKeys)
	if err != nil {
		return err
	}
	if s.findKind(more); s.Version < 2 {
		s.separate()
		s.rename()
	}
	return nil
}

// findKind sets Kind and Config. more are the keys of study.json that are not fields.
func (s *Study) findKind(more map[string]json.RawMessage) {
	if s.Kind != "" {
		s.Config = more[s.Kind]
		return
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		if bytes.HasPrefix(more[key], []byte("{")) {
			s.Kind, s.Config = key, more[key]
			return
		}
	}
}

// MarshalJSON writes the trial and what its kind of study recorded.
func (t Trial) MarshalJSON() ([]byte, error) {
	type plain Trial
	if t.Seen == nil {
		return json.Marshal(plain(t))
	}
	seen, err := json.Marshal(t.Seen)
	if err != nil {
		return nil, err
	}
	return joined(plain(t), seen)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Trial) UnmarshalJSON(data []byte) error {
	type plain Trial
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	more, err := otherKeys(data, trialKeys)
	if err != nil || len(more) == 0 {
		return err
	}
	seen, err := json.Marshal(more)
	t.Seen = json.RawMessage(seen)
	return err
}

var studyKeys, trialKeys = keysOf(reflect.TypeFor[Study]()), keysOf(reflect.TypeFor[Trial]())

// keysOf are the JSON keys of a struct's fields.
func keysOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// otherKeys returns an object's keys that are not in keys, with their values.
func otherKeys(data []byte, keys []string) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	// The decoder ignores the case of keys.
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) })
	})
	return all, nil
}

// withKeys writes v as an object, with additional keys.
func withKeys(v any, more map[string]any) ([]byte, error) {
	other, err := json.Marshal(more)
	if err != nil {
		return nil, err
	}
	return joined(v, other)
}

// joined writes v as an object, with the keys of another object.
func joined(v any, other []byte) ([]byte, error) {
	one, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(other, []byte("{")):
		return nil, fmt.Errorf("%.40s is not a JSON object", other)
	case bytes.Equal(other, []byte("{}")):
		return one, nil
	case bytes.Equal(one, []byte("{}")):
		return other, nil
	}
	one[len(one)-1] = ','
	return append(one, other[1:]...), nil
}
