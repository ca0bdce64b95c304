//go:build linux

// Package starting times the starts of guests. Each trial requests one guest, brings it to its first useful answer and destroys it.
// If the study says so, the guest is saved and restored before that (paper "virtualization-overheads", chapter 5).
package starting

import (
	"context"
	"slices"
	"strings"
	"time"

	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/starting"
)

// Kind is starting as a kind of study.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Once: "each trial is one start", Untraced: "no tracer sees a start", LoadHere: "starts are timed from this host",
		Search: true, Crowd: true, Systems: true,
	},
	Part: measure.PartOf(file.config),
}

// file is the kind's part of a study file.
type file struct {
	Cache     []string           `yaml:"cache,omitempty"`   // each makes a treatment; default both
	Pull      []string           `yaml:"pull,omitempty"`    // how a start gets its image: no, or pulled from a registry as COMPRESSION:LAYERS, such as gzip:8; each makes a treatment
	Restore   bool               `yaml:"restore,omitempty"` // whether the guest is also saved and restored
	Published []record.Published `yaml:"published,omitempty"`
}

// Allowed implements yamlfile.Limited.
func (file) Allowed() map[string][]string { return map[string][]string{"cache": notebook.Caches} }

const (
	askPause   = 5 * time.Millisecond // between two questions whether a service answers; ten times as long where the guest is emulated
	leftCold   = 0.05                 // share of what a start reads that may remain in the page cache for a cold start: what other programs have mapped
	leftWarm   = 0.95                 // share that must be in the page cache for a warm start
	savingTime = 2 * time.Minute      // limit for saving and restoring; three times as long where the guest is emulated
)

func (f file) config() (measure.Config, error) {
	out := config{files: host{}, Config: record.Config{Caches: f.Cache, Restore: f.Restore, Published: slices.Clone(f.Published)}}
	if len(out.Caches) == 0 {
		out.Caches = notebook.Caches
	}
	if err := measure.Refused(f); err != nil {
		return nil, err
	}
	for _, p := range f.Pull {
		if _, err := notebook.ParsePull(p); err != nil {
			return nil, measure.Wrong("pull", "%v", err)
		}
	}
	out.pulls = f.Pull
	for i, p := range out.Published {
		p.Moment = notebook.MetricKey(record.Name, p.Moment)
		out.Published[i] = p
		if p.Name == "" || !(p.StartS > 0) || p.RestoreS < 0 || p.Moment != "" && !slices.Contains(notebook.StartMoments, p.Moment) {
			last := len(notebook.StartMoments) - 1
			return nil, measure.Wrong("published", "%+v: must be {name: …, moment: one of %s or %s, start: seconds, restore: seconds}",
				p, strings.Join(notebook.StartMoments[:last], ", "), notebook.StartMoments[last])
		}
	}
	return out, nil
}

// config is how a study times starts.
type config struct {
	measure.Defaults
	record.Config
	pulls []string
	files files
}

// files is the page cache of the files that a start reads.
type files interface {
	cache(ctx context.Context, paths []string, cache string) (notebook.Cached, error)
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config: nothing. The treatments say everything that decides the meaning of a trial. The restore is an
// exception, because folders exist that began without it.
func (config) Identity([]*workload.Ready) []any { return nil }

// Factors implements measure.Config.
func (c config) Factors() []measure.Factor {
	return []measure.Factor{{Of: notebook.FactorCache, Values: c.Caches}, {Of: notebook.FactorPull, Values: c.pulls}}
}

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return c.Config.Metrics()
}

// Subject implements measure.Config. A rehearsal runs the work and does not time a start.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	if of.Rehearsal {
		return measure.NewPlain(b, of)
	}
	return &subject{Single: measure.Single{Bench: b, Cell: of}, config: c, of: &record.Start{}}
}
