package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

// limits are the ways of limiting CPUs as users name them.
var limits = map[string]string{"quota": notebook.Vanilla, "set": notebook.Pinned, notebook.Vanilla: notebook.Vanilla, notebook.Pinned: notebook.Pinned, notebook.Whole: notebook.Whole}

// ParseReference reads the name of an environment that others are to be compared with: "cn:docker:set" or "vm". First comes the
// platform. An engine, a limit, a network and an accelerator may follow, in any order. What else tells environments apart follows as
// KEY=VALUE: "cn:docker:set,instance=1/1GB". The answer is an Options.Baseline; of an empty text it is empty.
func ParseReference(text string) (map[string]string, error) {
	keys := map[string]string{}
	if text == "" {
		return keys, nil
	}
	set := func(key, value string) error {
		if key == notebook.FactorPlatform.Name {
			value = notebook.PlatformNamed(value)
		}
		if was, said := keys[key]; said {
			return fmt.Errorf("%q names two values of %s, %s and %s; name one", text, key, was, value)
		}
		keys[key] = value
		return nil
	}
	for i, item := range notebook.SplitPairs(text) {
		key, value, pair := strings.Cut(item, "=")
		switch {
		case pair && key == "":
			return nil, fmt.Errorf("%q has the value %q without a key; allowed: KEY=VALUE, with a key of %s or a parameter's name", text, value, strings.Join(baselineKeys, ", "))
		case pair:
			if err := set(key, value); err != nil {
				return nil, err
			}
		case i > 0:
			return nil, fmt.Errorf("%q: %q must be KEY=VALUE; an environment comes first, such as cn:docker:set", text, item)
		default:
			if err := setParts(text, strings.Split(item, ":"), set); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}

// setParts sets what the parts of an environment's name say. Errors quote the text.
func setParts(text string, parts []string, set func(key, value string) error) error {
	for part, word := range parts {
		if part == 0 && !slices.Contains(notebook.PlatformWords, word) {
			return fmt.Errorf("%q: unknown platform %q; allowed: %s, then an engine and a limit, such as cn:docker:set", text, word, strings.Join(notebook.PlatformWords, ", "))
		}
		if word == "" {
			return fmt.Errorf("%q has an empty part; allowed: PLATFORM[:ENGINE][:quota|set|whole], such as cn:docker:set", text)
		}
		if err := set(keyOf(part, word)); err != nil {
			return err
		}
	}
	return nil
}

// keyOf is what a part of an environment's name says.
func keyOf(part int, word string) (key, value string) {
	limit, limits := limits[word]
	switch {
	case part == 0:
		return notebook.FactorPlatform.Name, word
	case limits:
		return notebook.FactorProvisioning.Name, limit
	case slices.Contains(notebook.Networks, word):
		return notebook.FactorNetwork.Name, word
	case slices.Contains(notebook.FactorAccelerator.Values, word):
		return notebook.FactorAccelerator.Name, word
	}
	return notebook.FactorEngine.Name, word
}

// ReferenceText writes an Options.Baseline as ParseReference reads it: "cn:docker:set,instance=1/1GB".
func ReferenceText(keys map[string]string) string {
	rest := maps.Clone(keys)
	var name, pairs []string
	for _, key := range []string{notebook.FactorPlatform.Name, notebook.FactorEngine.Name, notebook.FactorProvisioning.Name, notebook.FactorNetwork.Name, notebook.FactorAccelerator.Name} {
		value := keys[key]
		if value == "" || keys[notebook.FactorPlatform.Name] == "" {
			continue
		}
		if key == notebook.FactorProvisioning.Name {
			switch value {
			case notebook.Vanilla:
				value = "quota"
			case notebook.Pinned:
				value = "set"
			}
		}
		if of, is := keyOf(len(name), value); of == key && is == keys[key] && !strings.ContainsAny(value, ":,=") {
			name = append(name, value)
			delete(rest, key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(rest), func(a, b string) int {
		return cmp.Or(cmp.Compare(Place(baselineKeys, a), Place(baselineKeys, b)), cmp.Compare(a, b))
	}) {
		pairs = append(pairs, key+"="+rest[key])
	}
	if len(name) == 0 {
		return strings.Join(pairs, ",")
	}
	return strings.Join(append([]string{strings.Join(name, ":")}, pairs...), ",")
}
