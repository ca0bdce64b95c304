package studyfile

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// Work is one workload with one combination of its parameters and of the factors that are not fields of a treatment.
type Work struct {
	Workload *workload.Workload
	Params   map[string]string
	Factors  map[string]string // notebook.Treatment.Factors
	Open     bool              // its length may be chosen

	use Use
}

// Treatment has the fields that all treatments of the work share.
func (w Work) Treatment() notebook.Treatment {
	return notebook.Treatment{Workload: w.Workload.Name, Params: w.Params, Factors: w.Factors}
}

// Lasts is about how long a run of the work takes, according to the study or else the workload.
func (w Work) Lasts() workload.Takes {
	if w.use.Takes != "" {
		if t, err := workload.ParseTakes(w.use.Takes); err == nil { // checkUse refuses wrong texts
			return t
		}
	}
	return w.Workload.Lasts(w.Params)
}

// Label names the work in a study.
func (w Work) Label() string { return w.Treatment().Label() }

// orMore follows the least value of the parameter that is a workload's length.
const orMore = " or more"

// works returns each workload with each combination of its parameters.
func (s *Spec) works(shipped fs.FS) (all []Work, err error) {
	from := map[string]string{}
	for i, u := range s.Workloads {
		var w *workload.Workload
		switch {
		case u.Port != 0:
			w, err = u.service(shipped, s.Base)
		case u.isOwn():
			w = u.own(s.Base)
		}
		if err != nil {
			return nil, s.located(err, "workloads", i)
		}
		if w != nil {
			w.Image.WrittenIn(s.Base)
		} else if w, err = workload.Find(shipped, u.Name, s.Base); err != nil {
			return nil, s.located(err, "workloads", i)
		}
		// The workload's name distinguishes treatments.
		if other, ok := from[w.Name]; ok && other != u.Name {
			return nil, fmt.Errorf("study %s: the workloads %s and %s are both named %s: rename one in its %s", s.Name, other, u.Name, w.Name, workload.File)
		}
		from[w.Name] = u.Name
		combos := []map[string]string{{}}
		for _, name := range slices.Sorted(maps.Keys(u.Params)) {
			if n := len(combos) * len(u.Params[name]); n > notebook.MaxTreatments {
				return nil, s.located(fmt.Errorf("params: %d combinations; a study may have at most %d configurations", n, notebook.MaxTreatments), "workloads", i, "params")
			}
			combos = cross(combos, name, u.Params[name])
		}
		for _, c := range combos {
			open := false
			if least, ok := strings.CutSuffix(c[w.Length], orMore); ok {
				c[w.Length], open = least, true
			}
			full, err := w.Resolve(c)
			if err != nil {
				return nil, s.located(err, "workloads", i, "params")
			}
			if open {
				full[w.Length] = cmp.Or(s.Lengths[notebook.Label(w.Name, full)], full[w.Length])
			}
			if len(u.Command) > 0 {
				full["command"] = brief(u.Command) // another command is another treatment
			}
			if len(u.Ask) > 0 {
				full["load"] = brief(append(u.Request.brief(), u.Ask...))
			}
			if u.Rate > 0 {
				full["rate"] = strconv.Itoa(u.Rate)
			}
			crossed, err := s.crossed(u, full)
			if err != nil {
				return nil, s.located(err, "workloads", i)
			}
			for _, factors := range crossed {
				if err := distinct(all, Work{w, full, factors, open, u}); err != nil {
					return nil, s.located(err, "workloads", i)
				}
				all = append(all, Work{w, full, factors, open, u})
			}
		}
	}
	return all, nil
}

// distinct refuses a command of the user's own whose label another, different command has.
func distinct(all []Work, w Work) error {
	if !w.use.isOwn() {
		return nil
	}
	same := func(a, b Use) bool {
		return a.Image == b.Image && reflect.DeepEqual(a.setting("."), b.setting("."))
	}
	for _, other := range all {
		if other.Label() == w.Label() && !same(other.use, w.use) {
			return fmt.Errorf("name: %q: another command has this name and differs in its image, environment or volumes: give it another name", w.use.Name)
		}
	}
	return nil
}

// chosen are the factors of a use that are not fields of a treatment. key is the key of the study file for factor i.
func (s *Spec) chosen(u Use) (all []measure.Factor, key func(i int) string) {
	if s.config != nil {
		all = s.config.Factors()
	}
	of := len(all)
	if len(u.Devices) > 0 {
		all = append(slices.Clip(all), measure.Factor{Of: notebook.FactorDevices, Values: []string{strings.Join(u.Devices, ",")}})
	}
	all = append(slices.Clip(all), measure.Factor{Of: notebook.FactorNeighbours, Values: s.neighbours(u).texts()})
	return all, func(i int) string {
		if i < of {
			return s.measure.Name
		}
		return all[i].Of.Name
	}
}

// crossed combines every value of each factor of a use. No parameter of the workload (params) may have the name of a factor, because a
// treatment's label holds both.
func (s *Spec) crossed(u Use, params map[string]string) (all []map[string]string, err error) {
	all = []map[string]string{nil}
	chosen, key := s.chosen(u)
	for i, f := range chosen {
		if len(f.Values) == 0 {
			continue
		}
		name := f.Of.Name
		if _, taken := params[name]; taken {
			return nil, fmt.Errorf("%s: the workload has its own parameter %q: use a workload without it", key(i), name)
		}
		all = cross(all, name, f.Values)
	}
	return all, nil
}

// cross combines each of all with each of the values, under the name.
func cross(all []map[string]string, name string, values []string) (more []map[string]string) {
	for _, one := range all {
		for _, v := range values {
			n := map[string]string{name: v}
			maps.Copy(n, one)
			more = append(more, n)
		}
	}
	return more
}

// texts are the values of notebook.FactorNeighbours.
func (n Neighbours) texts() (all []string) {
	for _, each := range n {
		all = append(all, each.Text())
	}
	return all
}
