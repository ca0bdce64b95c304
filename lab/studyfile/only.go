package studyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

// Only selects the treatments of a plan that have these values.
type Only map[string]string

// String is the form that ParseOnly reads.
func (o Only) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		all = append(all, k+"="+o[k])
	}
	return strings.Join(all, ",")
}

// ParseOnly reads KEY=VALUE,….
func ParseOnly(text string) (Only, error) {
	only := Only{}
	if text == "" {
		return only, nil
	}
	keys := []string{"workload", "platform", "engine", "provisioning", "instance", "network", "isolation"}
	for _, kv := range strings.Split(text, ",") {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || v == "" {
			return nil, fmt.Errorf("--only %q: KEY=VALUE was expected, with a key of %s", kv, strings.Join(keys, ", "))
		}
		if !slices.Contains(keys, k) {
			return nil, fmt.Errorf("--only: unknown key %q; %s was expected", k, strings.Join(keys, ", "))
		}
		if only[k] != "" {
			return nil, fmt.Errorf("--only: %s is named twice; one value of each key was expected", k)
		}
		only[k] = v
	}
	return only, nil
}

// keeps reports whether the treatment is selected. Bare metal stays whatever platform, engine or provisioning is selected, because
// the others are compared with it.
func (o Only) keeps(t notebook.Treatment) bool {
	for k, v := range o {
		switch {
		case k == "workload" && t.Workload != v,
			k == "instance" && t.Instance.Name != v,
			t.Platform != notebook.BM && (k == "platform" && t.Platform != v || k == "engine" && t.Engine != v || k == "provisioning" && t.Provisioning != v || k == "network" && t.Network != v || k == "isolation" && t.Isolation != v):
			return false
		}
	}
	return true
}

// known says which value occurs nowhere in the study.
func (o Only) known(s *Spec, works []Work) error {
	has := map[string][]string{"provisioning": slices.Clone(notebook.Provisionings)}
	for _, u := range works {
		has["workload"] = append(has["workload"], u.Workload.Name)
		has["instance"] = append(has["instance"], s.instances(u.use)...)
		if u.Workload.Service != nil {
			has["network"] = append(has["network"], notebook.NetBridge) // where the study names no network
		}
	}
	for _, p := range s.Platforms {
		has["platform"] = append(has["platform"], p.Platform)
		has["network"] = append(has["network"], p.Networks...)
		has["isolation"] = append(has["isolation"], p.isolation()...)
		es := p.Engines
		if len(es) == 0 {
			es = s.known.Engines.Names(p.Platform)[:1]
		}
		for _, choice := range es {
			has["engine"] = append(has["engine"], strings.Split(choice, "|")...)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(has[k], o[k]) {
			all := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(has[k]))), func(v string) bool { return v == "" })
			return fmt.Errorf("--only %s=%s: the study %s has %s", k, o[k], s.Name, strings.Join(all, ", "))
		}
	}
	return nil
}
