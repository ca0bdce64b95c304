package notebook

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// separate moves factors from Params to Factors in a study of format 1, which kept both in Params. A workload may have a parameter with the
// name of a factor, which stays where it is: format 1 refused such a workload only in a study that had the factor. So separate asks, for each
// factor and workload, whether the study had the factor.
func (s *Study) separate() {
	config := map[string]json.RawMessage{}
	if c, is := s.Config.(json.RawMessage); is {
		_ = json.Unmarshal(c, &config) // the code that reads the configuration reports its errors
	}
	var all []*Treatment
	for i := range s.Treatments {
		all = append(all, &s.Treatments[i])
	}
	for i := range s.LeftOut {
		all = append(all, &s.LeftOut[i].Treatment)
	}
	of := map[string][]*Treatment{} // by workload
	for _, t := range all {
		of[t.Workload] = append(of[t.Workload], t)
	}
	for workload, its := range of {
		for _, e := range earlier {
			if e.had(s, config, workload, its) {
				for _, t := range its {
					t.separate(e.factor.Name)
				}
			}
		}
	}
}

// separate moves one factor, if the treatment has it.
func (t *Treatment) separate(name string) {
	value, is := t.Params[name]
	if !is {
		return
	}
	factors := maps.Clone(t.Factors)
	if factors == nil {
		factors = map[string]string{}
	}
	factors[name] = value
	t.Params, t.Factors = maps.Clone(t.Params), factors
	if delete(t.Params, name); len(t.Params) == 0 {
		t.Params = nil
	}
}

// earlierFactor says how a study of format 1 shows that it had a factor.
type earlierFactor struct {
	factor Factor
	key    string            // of the configuration of every kind that had the factor, and of no other kind; empty: any study could have it
	starts string            // what the key's value starts with, if other kinds have the key too
	valid  func(string) bool // whether a text is a value of the factor; nil: Factor.Values are all there are
}

var earlier = []earlierFactor{
	{factor: FactorAddresses, key: "initial_s"},
	{factor: FactorHugePages, key: "initial_s"},
	{factor: FactorCache, key: "caches"},
	{factor: FactorRoot, key: "guests", starts: "["},
	{factor: FactorRate, key: "for_s", valid: func(v string) bool { _, err := strconv.Atoi(v); return err == nil }},
	{factor: FactorNeighbours, valid: func(v string) bool { _, err := ParseNeighbours(v); return err == nil }},
	{factor: FactorDevices, valid: func(v string) bool { return deviceNames().MatchString(v) }},
}

// deviceNames matches CDI names of devices, separated by commas. No other value had this form.
var deviceNames = sync.OnceValue(func() *regexp.Regexp {
	const one = `[a-zA-Z0-9._-]+/[a-zA-Z0-9_-]+=[a-zA-Z0-9._:-]+`
	return regexp.MustCompile(`^` + one + `(,` + one + `)*$`)
})

// had reports whether the study had the factor for a workload.
func (e earlierFactor) had(s *Study, config map[string]json.RawMessage, workload string, its []*Treatment) bool {
	name, n := e.factor.Name, 0
	for _, t := range its {
		v, is := t.Params[name]
		if !is {
			continue
		}
		n++
		if valid := e.valid; valid == nil && !slices.Contains(e.factor.Values, v) || valid != nil && !valid(v) {
			return false
		}
	}
	if n == 0 {
		return false
	}
	if e.key != "" {
		value, is := config[e.key]
		return is && strings.HasPrefix(string(bytes.TrimSpace(value)), e.starts)
	}
	if name != FactorNeighbours.Name {
		return true
	}
	// A study recorded what guests got in addition to their neighbours. If it named a workload several times, only the last entry was recorded. A
	// workload's own parameter is in all of its treatments.
	return n < len(its) || slices.Contains(s.Also[workload], Metric{Name: "own share", Unit: OwnShare.Unit})
}
