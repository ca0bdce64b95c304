package notebook

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// limits are the ways of limiting CPUs as users name them.
var limits = map[string]string{"quota": Vanilla, "set": Pinned, Vanilla: Vanilla, Pinned: Pinned, Whole: Whole}

// Reference chooses the environment that others are compared with, instead of bare metal at the same instance type: [ParseReference] makes one of a
// name. Keys are platform, engine, accelerator, kernel, provisioning, instance, network, isolation, machine, host_cores, or the name of a
// parameter of the workload. Without an instance, the reference is looked for at each treatment's own instance type; without a network or
// host_cores, the treatment's own goes before others. An empty value matches what has none. Empty: bare metal.
type Reference = map[string]string

// ReferenceKeys are the keys of a [Reference] that every treatment has, in the order in which [ReferenceText] writes them. The other
// factors and the parameters follow in alphabetical order.
var ReferenceKeys = FactorNames(Factor.IsField)

// ReferenceKeysOf returns a treatment's factors and parameters by the keys of a reference.
func ReferenceKeysOf(t Treatment) Reference {
	m := Reference{}
	maps.Copy(m, t.Assigned())
	for _, f := range Factors {
		if f.IsField() {
			m[f.Name] = f.Of(t)
		}
	}
	return m
}

// Refers says whether the treatment o, on a host with so many CPUs online, is the reference r for the treatment t. Where r names no instance type,
// parameter or factor that only some studies have, o must have t's value. An error names an unknown key.
func Refers(r Reference, o Treatment, hostCores int, t Treatment) (bool, error) {
	assigned := map[string]string{}
	maps.Copy(assigned, t.Assigned())
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if _, known := assigned[k]; !known && !slices.Contains(ReferenceKeys, k) {
			return false, fmt.Errorf("--against: unknown key %q; allowed: %s, or a parameter of %s", k, strings.Join(ReferenceKeys, ", "), t.Workload)
		}
	}
	has := ReferenceKeysOf(o)
	for k, v := range r {
		switch {
		case !slices.Contains(ReferenceKeys, k):
			assigned[k] = v
		case k == FactorHostCores.Name && v != "": // all that the host has, too, can be said as a number
			if v != strconv.Itoa(hostCores) {
				return false, nil
			}
		case v != has[k]:
			return false, nil
		}
	}
	_, instance := r[FactorInstance.Name]
	return (instance || o.Instance.SameSize(t.Instance)) && maps.Equal(o.Assigned(), assigned), nil
}

// OwnFirst narrows found, all of which fit the reference, to those for which is holds, if there are any: they have the treatment's own value of
// a key that the reference does not name.
func OwnFirst[T any](r Reference, key Factor, found []T, is func(T) bool) []T {
	if _, said := r[key.Name]; said || !slices.ContainsFunc(found, is) {
		return found
	}
	return slices.DeleteFunc(found, func(o T) bool { return !is(o) })
}

// IsBareMetal says whether the reference is bare metal of each treatment's own size: as if none was named.
func IsBareMetal(r Reference) bool {
	return len(r) == 0 || maps.Equal(r, Reference{FactorPlatform.Name: BM})
}

// Baselines are the treatments that the study's rule compares each treatment with, by its ID. First comes the reference of its design, where
// the study has exactly one for the treatment. Then comes bare metal of the same instance type with the same work. Without both it is the
// first VM that differs by the kernel only. A baseline is its own. The A/A control is always compared with bare metal.
func (s *Study) Baselines() map[string]Treatment {
	against, err := ParseReference(s.Design.Against)
	if err != nil { // of another version: as without one
		against = nil
	}
	all := map[string]Treatment{}
	for _, t := range s.Treatments {
		if found, err := s.References(against, t, Treatment.hostCores); err == nil && len(found) == 1 && !t.AA {
			all[t.ID] = found[0]
		} else if b, ok := s.bareMetal(t); ok {
			all[t.ID] = b
		} else if b, ok := s.firstKernel(t); ok {
			all[t.ID] = b
		}
	}
	return all
}

// hostCores are the CPUs that the study has online for the treatment; 0: all.
func (t Treatment) hostCores() int { return t.HostCores }

// References are the treatments of the study that the reference may name for t; none where it is empty. cores are the CPUs online for a
// treatment. An error names an unknown key.
func (s *Study) References(r Reference, t Treatment, cores func(Treatment) int) (found []Treatment, err error) {
	if len(r) == 0 {
		return nil, nil
	}
	for _, o := range s.Treatments {
		if o.AA || !o.Representative() || o.Workload != t.Workload {
			continue
		}
		is, err := Refers(r, o, cores(o), t)
		if err != nil {
			return nil, err
		}
		if is {
			found = append(found, o)
		}
	}
	found = OwnFirst(r, FactorNetwork, found, func(o Treatment) bool { return o.Network == t.Network })
	return OwnFirst(r, FactorHostCores, found, func(o Treatment) bool { return o.HostCores == t.HostCores }), nil
}

// bareMetal is the bare-metal treatment with the same instance type and the same work.
func (s *Study) bareMetal(t Treatment) (Treatment, bool) {
	for _, b := range s.Treatments {
		if b.Platform == BM && !b.AA && b.Instance.Name == t.Instance.Name && b.HostCores == t.HostCores && b.Label() == t.Label() {
			return b, true
		}
	}
	return Treatment{}, false
}

// firstKernel is the first treatment that differs from t by its kernel only, or t itself. ok: the study has several such treatments.
func (s *Study) firstKernel(t Treatment) (first Treatment, ok bool) {
	n := 0
	for _, o := range s.Treatments {
		if !o.SameButKernel(t) {
			continue
		}
		if n++; n == 1 {
			first = o
		}
	}
	return first, n > 1
}

// ParseReference reads the name of an environment that others are to be compared with: "cn:docker:set" or "vm". First comes the
// platform. An engine, a limit, a network and an accelerator may follow, in any order. What else tells environments apart follows as
// KEY=VALUE: "cn:docker:set,instance=1/1GB". An empty text gives an empty reference.
func ParseReference(text string) (Reference, error) {
	keys := Reference{}
	if text == "" {
		return keys, nil
	}
	set := func(key, value string) error {
		if key == FactorPlatform.Name {
			value = PlatformNamed(value)
		}
		if was, said := keys[key]; said {
			return fmt.Errorf("%q names two values of %s, %s and %s; name one", text, key, was, value)
		}
		keys[key] = value
		return nil
	}
	for i, item := range SplitPairs(text) {
		key, value, pair := strings.Cut(item, "=")
		switch {
		case pair && key == "":
			return nil, fmt.Errorf("%q has the value %q without a key; allowed: KEY=VALUE, with a key of %s or a parameter's name", text, value, strings.Join(ReferenceKeys, ", "))
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
		if part == 0 && !slices.Contains(PlatformWords, word) {
			return fmt.Errorf("%q: unknown platform %q; allowed: %s, then an engine and a limit, such as cn:docker:set", text, word, strings.Join(PlatformWords, ", "))
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
		return FactorPlatform.Name, word
	case limits:
		return FactorProvisioning.Name, limit
	case slices.Contains(Networks, word):
		return FactorNetwork.Name, word
	case slices.Contains(FactorAccelerator.Values, word):
		return FactorAccelerator.Name, word
	}
	return FactorEngine.Name, word
}

// ReferenceText writes a reference as ParseReference reads it: "cn:docker:set,instance=1/1GB".
func ReferenceText(keys Reference) string {
	rest := maps.Clone(keys)
	var name, pairs []string
	for _, key := range []string{FactorPlatform.Name, FactorEngine.Name, FactorProvisioning.Name, FactorNetwork.Name, FactorAccelerator.Name} {
		value := keys[key]
		if value == "" || keys[FactorPlatform.Name] == "" {
			continue
		}
		if key == FactorProvisioning.Name {
			switch value {
			case Vanilla:
				value = "quota"
			case Pinned:
				value = "set"
			}
		}
		if of, is := keyOf(len(name), value); of == key && is == keys[key] && !strings.ContainsAny(value, ":,=") {
			name = append(name, value)
			delete(rest, key)
		}
	}
	place := func(key string) int { // the others follow
		if i := slices.Index(ReferenceKeys, key); i >= 0 {
			return i
		}
		return len(ReferenceKeys)
	}
	for _, key := range slices.SortedFunc(maps.Keys(rest), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	}) {
		pairs = append(pairs, key+"="+rest[key])
	}
	if len(name) == 0 {
		return strings.Join(pairs, ",")
	}
	return strings.Join(append([]string{strings.Join(name, ":")}, pairs...), ",")
}
