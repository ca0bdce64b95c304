package studyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

// Only selects the treatments of a plan that have these values, by key: the workload, or a factor.
type Only map[string]string

const (
	byWorkload = "workload"
	allCores   = "all"   // of the host's CPUs, as under host_cores:
	usual      = "usual" // the machine of this name in studies, or the kernel that the engine chooses
)

// OnlyKeys are the keys of an Only.
func OnlyKeys() []string { return append([]string{byWorkload}, notebook.FactorNames(nil)...) }

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
	keys := OnlyKeys()
	for _, kv := range notebook.SplitPairs(text) {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || v == "" {
			return nil, fmt.Errorf("--only %q: must be KEY=VALUE; the keys are %s", kv, strings.Join(keys, ", "))
		}
		if !slices.Contains(keys, k) {
			return nil, fmt.Errorf("--only: unknown key %q; the keys are %s", k, strings.Join(keys, ", "))
		}
		if only[k] != "" {
			return nil, fmt.Errorf("--only: %s is named twice: give one value for each key", k)
		}
		if k == notebook.FactorPlatform.Name {
			v = notebook.PlatformNamed(v)
		}
		only[k] = v
	}
	return only, nil
}

// onlyValue is a treatment's value of a factor in the form that users write.
func onlyValue(f notebook.Factor, t notebook.Treatment) string {
	switch v := f.Of(t); {
	case v != "":
		return v
	case f.Name == notebook.FactorHostCores.Name:
		return allCores
	case f.Name == notebook.FactorMachine.Name, f.Name == notebook.FactorKernel.Name:
		return usual
	}
	return ""
}

// keeps reports whether the treatment is selected. Factors that bare metal lacks, such as the engine, do not deselect it, because the
// other treatments are compared with it.
func (o Only) keeps(t notebook.Treatment) bool {
	for k, v := range o {
		if k == byWorkload {
			if t.Workload != v {
				return false
			}
			continue
		}
		f, _ := notebook.FactorNamed(k)
		ofAll := !f.IsField() || k == notebook.FactorInstance.Name || k == notebook.FactorHostCores.Name
		if (ofAll || t.Platform != notebook.BM) && onlyValue(f, t) != v {
			return false
		}
	}
	return true
}

// known returns an error for a value that occurs nowhere in the study. has are the values that occur, by key.
func (o Only) known(study string, has map[string][]string) error {
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(has[k], o[k]) {
			continue
		}
		all := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(has[k]))), func(v string) bool { return v == "" })
		if len(all) == 0 {
			return fmt.Errorf("--only %s=%s: the study %s has no %s: leave it out", k, o[k], study, k)
		}
		return fmt.Errorf("--only %s=%s: the study %s has %s", k, o[k], study, strings.Join(all, ", "))
	}
	return nil
}
