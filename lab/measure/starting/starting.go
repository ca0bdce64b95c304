//go:build linux

// Package starting times the starts of guests: each trial is one guest, asked for, brought to its first useful answer and destroyed; where the
// study says so it is saved and restored before (paper "virtualization-overheads", chapter 5).
package starting

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/starting"
	"tare/yamlfile"
)

// Kind is the kind.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Once: "each trial is one start", Untraced: "no tracer sees a start", LoadHere: "starts are timed from this host",
		Search: true, Crowd: true, Systems: true,
	},
	Read: read,
}

// file is what a study's file says.
type file struct {
	Cache     []string           `yaml:"cache,omitempty"`   // of notebook.Caches, each makes a treatment; default both
	Restore   bool               `yaml:"restore,omitempty"` // then the guest is saved, and restored
	Published []record.Published `yaml:"published,omitempty"`
}

const (
	askPause   = 5 * time.Millisecond // between two questions whether a service answers; ten times that where it is emulated
	leftCold   = 0.05                 // the share of what a start reads that may be in the page cache all the same: what other programs have mapped
	leftWarm   = 0.95                 // that has to be in it
	savingTime = 2 * time.Minute      // that saving, or restoring, may take; three times that where the guest is emulated
)

func read(n *yaml.Node, _ []string) (measure.Config, error) {
	var f file
	if err := yamlfile.DecodePart(n, &f); err != nil {
		return nil, err
	}
	return f.config()
}

func (f file) config() (measure.Config, error) {
	out := config{files: host{}, Config: record.Config{Caches: f.Cache, Restore: f.Restore, Published: f.Published}}
	if len(out.Caches) == 0 {
		out.Caches = notebook.Caches
	}
	for _, c := range out.Caches {
		if !slices.Contains(notebook.Caches, c) {
			return nil, measure.Wrong("cache", "%q: %s was expected", c, strings.Join(notebook.Caches, " or "))
		}
	}
	for _, p := range f.Published {
		if p.Name == "" || !(p.StartS > 0) || p.RestoreS < 0 || p.Moment != "" && !slices.Contains(notebook.StartMoments, p.Moment) {
			last := len(notebook.StartMoments) - 1
			return nil, measure.Wrong("published", "%+v: {name: …, moment: one of %s or %s, start: seconds, restore: seconds} was expected",
				p, strings.Join(notebook.StartMoments[:last], ", "), notebook.StartMoments[last])
		}
	}
	return out, nil
}

// config is how a study times starts.
type config struct {
	measure.Defaults
	record.Config
	files files
}

// files are what the page cache has of a start's.
type files interface {
	cache(ctx context.Context, paths []string, cache string) (notebook.Cached, error)
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config: treatments say all of it that decides what trials mean, but for the restore, which folders have begun without.
func (config) Identity([]*workload.Ready) []any { return nil }

// Factors implements measure.Config.
func (c config) Factors() []measure.Factor {
	return []measure.Factor{{Name: notebook.ParamCache, Values: c.Caches}}
}

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return c.Config.Metrics()
}

// Subject implements measure.Config. What is rehearsed is the work, and no start.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	p := measure.NewPlain(b, of)
	if of.Rehearsal {
		return p
	}
	return &subject{Plain: p, config: c, of: &record.Start{}}
}
