//go:build linux

// Package memory measures the memory that guests take from the host. It makes guests of a treatment one after another, each doing
// the workload's work. At each of the study's numbers of guests it reads the memory of all of them (paper
// "virtualization-overheads", sections 6.3 to 6.6.1).
package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/ksm"
	"tare/lab/measure"
	"tare/lab/noise"
	"tare/lab/setting"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/memory"
	"tare/yamlfile"
)

// Kind is memory as a kind of study.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Once: "a guest's memory is measured once", Untraced: "the study measures memory, not time, so tracers have nothing to explain",
		Search: true, Crowd: true, Untimed: true, Systems: true, Stays: true,
	},
	Part: measure.Part{File: file{}, Read: read},
}

// file is the kind's part of a study file.
type file struct {
	Guests  []int `yaml:"guests,omitempty"`  // default 1 and 2
	Further []int `yaml:"further,omitempty"` // greater numbers, as far as there is room, for the report's curve

	KSM    string `yaml:"ksm,omitempty"`    // how the kernel merges equal pages: as in the paper, or as the host is set. Memory is then measured a second time
	Frames bool   `yaml:"frames,omitempty"` // ask VMs how they use each frame of their memory

	HugePages string `yaml:"huge_pages,omitempty"` // default: the host's setting

	Roots   []string `yaml:"roots,omitempty"`   // each makes a treatment
	Merging []string `yaml:"merging,omitempty"` // likewise: whether programs in containers ask for their pages to be merged

	Published   map[string][]float64 `yaml:"published,omitempty"`    // the paper's figures for VMs, in MiB, by metric; for duplicates the four numbers of a line of Table 6.4
	PublishedOf string               `yaml:"published_of,omitempty"` // the workload whose VMs the paper measured; default: every workload
}

// Allowed implements yamlfile.Limited.
func (file) Allowed() map[string][]string {
	return map[string][]string{"ksm": notebook.KSMSettings, "huge_pages": {record.HugePagesOff}, "roots": notebook.Roots, "merging": notebook.Mergings}
}

const (
	mostGuests  = 1000
	mergingTime = 10 * time.Minute // longest time until the kernel has finished merging
)

func read(n *yaml.Node, workloads []string) (measure.Config, error) {
	var f file
	if err := yamlfile.DecodePart(n, &f); err != nil {
		return nil, err
	}
	if f.PublishedOf != "" && !slices.Contains(workloads, f.PublishedOf) {
		return nil, measure.Wrong("published_of", "%q: must be a workload of this study", f.PublishedOf)
	}
	return f.config()
}

func (f file) config() (measure.Config, error) {
	out := config{roots: f.Roots, mergings: f.Merging, scales: host{}, Config: record.Config{Guests: slices.Clone(f.Guests), Further: slices.Clone(f.Further), KSM: f.KSM, Frames: f.Frames, HugePages: f.HugePages, PageCache: true}}
	if err := measure.Refused(f); err != nil {
		return nil, err
	}
	if len(out.Guests) == 0 {
		out.Guests = []int{1, 2}
	}
	for i, n := range out.Guests {
		if n < 1 || n > mostGuests || i > 0 && n <= out.Guests[i-1] {
			return nil, measure.Wrong("guests", "%v: must be numbers from 1 to %d, each greater than the one before", f.Guests, mostGuests)
		}
	}
	before := out.Most()
	for _, n := range f.Further {
		if n <= before || n > mostGuests {
			return nil, measure.Wrong("further", "%v: must be numbers up to %d, each greater than the one before, and the first greater than those of guests", f.Further, mostGuests)
		}
		before = n
	}
	known := append(out.Figures(), record.PSS)
	for was, numbers := range f.Published {
		name, want := notebook.MetricKey(record.Name, was), 1
		if slices.Contains(record.PublishedLines, name) {
			want = 4
		}
		if !slices.ContainsFunc(known, func(f notebook.Metric) bool { return f.Name == name }) || len(numbers) != want {
			return nil, measure.Wrong("published", "%s: %v: must be a metric of this study with one number, or with four for duplicates", was, numbers)
		}
		if out.Published == nil {
			out.Published = map[string][]float64{}
		}
		out.Published[name] = numbers
	}
	out.PublishedOf = f.PublishedOf
	return out, nil
}

// config is how a study weighs guests.
type config struct {
	measure.Defaults
	record.Config
	roots    []string
	mergings []string
	scales   scales
}

// scales read the memory of guests, and let the kernel merge their pages.
type scales interface {
	weigh(ctx context.Context, guests []crowd.Guest, t notebook.Treatment, as manner) (record.Weight, error)
	// merge lets the kernel merge equal pages under one of notebook.KSMSettings. An error says why the host does not.
	merge(j *journal.Journal, setting string) (merging, error)
}

// merging is the kernel merging equal pages.
type merging interface {
	// Settle waits until the amount of merged memory no longer changes, and returns how merging went.
	Settle(ctx context.Context) (*notebook.KSM, error)
	// End separates all merged pages and restores the host's settings.
	End(ctx context.Context) error
}

// depth is what VMs are asked about their memory when they are weighed.
type depth uint8

// What VMs are asked.
const (
	outside        depth = iota // nothing
	eachFrame                   // how they use each frame
	framesAndFiles              // the same, and the last VM also which files its page cache holds, which takes memory in that VM
)

// manner is how guests are weighed.
type manner struct {
	system bool  // guests are whole systems with their own init
	sizes  bool  // only their sizes are wanted: neither contents nor the last guest's account
	asked  depth // what VMs are asked
	cache  bool  // guests' pages are also compared with pages of the host's page cache that no process maps; takes seconds
}

// host weighs on this host.
type host struct{}

func (host) merge(j *journal.Journal, setting string) (merging, error) { return ksm.Merge(j, setting) }

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config.
func (c config) Identity([]*workload.Ready) []any { return []any{&c.Config} }

// Factors implements measure.Config.
func (c config) Factors() []measure.Factor {
	return []measure.Factor{{Of: notebook.FactorRoot, Values: c.roots}, {Of: notebook.FactorMerging, Values: c.mergings}}
}

// LeavesOut implements measure.Config: not everything can ask for its pages to be merged.
func (c config) LeavesOut(t notebook.Treatment, _ engine.Kind, w *workload.Workload) *notebook.Message {
	switch {
	case notebook.FactorMerging.Of(t) != notebook.MergingAsked:
		return nil
	case notebook.HasMachine(t.Platform):
		return notebook.Say("merging-asked-vm")
	case w.System:
		return notebook.Say("merging-asked-system")
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_MEMORY_MERGE, 0, 0, 0, 0); err != nil {
		return notebook.Say("merging-asked-kernel", "cause", err)
	}
	return nil
}

// Metrics implements measure.Config. The report draws only metrics with a direction, so metrics that a figure names get one.
func (c config) Metrics(_ *workload.Workload, drawn []string) (notebook.Metric, []notebook.Metric) {
	all := c.Figures()
	for i, metric := range all {
		if slices.Contains(drawn, metric.Name) {
			all[i].Better = notebook.Lower
		}
	}
	return record.PSS, all
}

// manySystems is a number of whole systems at once for which the kernel's usual limit of inotify instances is not enough.
const manySystems = 16

// Set implements measure.Config: if the study asks for it, the host makes no huge pages. For many guests it raises a limit that whole systems meet.
func (c config) Set(j *journal.Journal) (notes []*notebook.Message, undo func(context.Context) error, err error) {
	var undos []func(context.Context) error
	undo = func(ctx context.Context) (err error) {
		for _, u := range slices.Backward(undos) {
			err = errors.Join(err, u(ctx))
		}
		return err
	}
	if c.HugePages == record.HugePagesOff {
		q, err := noise.Host.WithoutHugePages(j)
		if err != nil {
			return nil, nil, err
		}
		for _, said := range notebook.Said(q.Set) {
			notes = append(notes, notebook.Say("set-for-the-run", "change", said))
		}
		undos = append(undos, q.PutBack)
	}
	if slices.Max(c.Numbers()) > manySystems {
		files, err := setting.Host.ForMany()
		if err != nil {
			return nil, nil, errors.Join(err, undo(context.Background()))
		}
		changes, err := setting.Host.Set(context.Background(), j, files)
		if err != nil {
			return nil, nil, errors.Join(err, undo(context.Background()))
		}
		if changes != nil {
			undos = append(undos, changes.Undo)
			notes = append(notes, notebook.Say("set-for-the-run", "change", fmt.Sprint(files[0].Path, ": ", files[0].Value)))
		}
	}
	return notes, undo, nil
}

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{measure.Single{Bench: b, Cell: of}, c}
}

type subject struct {
	measure.Single
	config
}

// Trial implements measure.Subject. It makes guests until the study's greatest number of them live at the same time; the first
// exists already. Each guest does its work, and all are weighed at each number. What prevents one of the further numbers is a warning, and
// what was weighed before counts. A trial that does not count weighs only the first guest.
func (s *subject) Trial(ctx context.Context, step measure.Step) (tr notebook.Trial, over bool, err error) {
	m := s.Config
	if !step.Counts() {
		m = record.Config{Guests: []int{1}}
	}
	var seen record.Seen
	tr.Start = time.Now().UTC()
	group := &crowd.Group{Host: s.Bench, Treatment: s.Treatment, Ready: s.Ready, Timeout: s.Timeout, First: s.Guest()}
	defer func() {
		err = errors.Join(err, group.Leave(ctx))
		tr.HostS, tr.Seen = time.Since(tr.Start).Seconds(), seen
	}()
	for _, n := range m.Numbers() {
		weights, warnings := len(seen.Weights), len(tr.Warnings)
		cause, err := s.reach(ctx, n, m, group, &tr, &seen)
		switch {
		case err != nil:
			tr.Failure = cmp.Or(cause, notebook.ErrorMessage(err))
			return tr, true, err
		case ctx.Err() != nil:
			return tr, true, nil
		case cause != nil && n <= m.Most():
			tr.Failure = cause
			return tr, true, nil
		}
		if cause != nil {
			seen.Weights = seen.Weights[:weights]
			tr.Warnings = append(tr.Warnings[:warnings], notebook.Say("no-further-guests", "guests", n, "cause", cause))
			break
		}
	}
	tr.Figures = figures(m, seen.Weights)
	tr.Value = tr.Figures[record.PSS.Name]
	return tr, true, nil
}

// reach adds guests until n live, and weighs them; cause says why it cannot. It ends early if the context does, which its caller checks.
func (s *subject) reach(ctx context.Context, n int, m record.Config, group *crowd.Group, tr *notebook.Trial, seen *record.Seen) (cause *notebook.Message, err error) {
	for len(group.Guests) < n {
		if ctx.Err() != nil {
			return nil, nil
		}
		nth := len(group.Guests) + 1
		cause, err := s.resident(ctx, group, seen.Weights)
		if cause != nil {
			cause = notebook.Say("of-guest-of", "guest", nth, "of", max(n, m.Most()), "cause", cause)
		}
		if cause != nil || err != nil {
			return cause, err
		}
	}
	return s.at(ctx, m, group, tr, seen)
}

// resident adds one more guest and starts its work; cause says why that failed.
func (s *subject) resident(ctx context.Context, group *crowd.Group, weights []record.Weight) (cause *notebook.Message, err error) {
	each := int64(0)
	if n := len(weights); n > 0 {
		each = (weights[n-1].RSS + weights[n-1].KernelCopy) / int64(weights[n-1].Guests)
	}
	if g, cause := group.Another(ctx, each); g == nil {
		return cause, nil
	}
	return group.Begin(ctx)
}

// at weighs the current guests once their memory has settled; if the study has their pages merged, it weighs them a second time. cause says
// why they cannot be weighed.
func (s *subject) at(ctx context.Context, m record.Config, group *crowd.Group, tr *notebook.Trial, seen *record.Seen) (cause *notebook.Message, err error) {
	n := len(group.Guests)
	took, restless, err := crowd.Settle(ctx, group.Guests, s.Treatment)
	if err != nil {
		return notebook.Say("guests-unread", "cause", err), nil
	}
	if restless != nil {
		tr.Warnings = append(tr.Warnings, restless)
	}
	last := n == m.Most()
	as := manner{system: s.Ready.Workload.System, sizes: n > m.Most(), asked: outside, cache: last}
	if m.Frames && n <= m.Most() {
		as.asked = eachFrame
	}
	if m.Frames && last && m.KSM == "" {
		as.asked = framesAndFiles
	}
	w, err := s.scales.weigh(ctx, group.Guests, s.Treatment, as)
	if err != nil {
		return notebook.ErrorMessage(err), nil
	}
	w.Guests, w.SettledS = n, took.Seconds()
	seen.Weights = append(seen.Weights, w)
	if m.KSM != "" {
		if m.Frames && last {
			as.asked = framesAndFiles
		}
		merged, cause, err := s.merged(ctx, m.KSM, group.Guests, as)
		if cause != nil || err != nil {
			return cause, err
		}
		if merged.KSM.Unsettled {
			tr.Warnings = append(tr.Warnings, notebook.Say("still-merging", "guests", n, "after", mergingTime))
		}
		seen.Weights = append(seen.Weights, merged)
	}
	if i := group.Over(); i >= 0 {
		return notebook.Say("work-ended-when-weighed", "guest", i+1, "cause", group.Works[i].How()), nil
	}
	return nil, nil
}

// merged weighs the guests with their pages merged, and separates the pages again.
func (s *subject) merged(ctx context.Context, setting string, guests []crowd.Guest, as manner) (w record.Weight, cause *notebook.Message, err error) {
	merging, err := s.scales.merge(s.Journal(), setting)
	if err != nil {
		return w, notebook.Say("ksm", "cause", err), nil
	}
	defer func() {
		ectx, cancel := context.WithTimeout(context.WithoutCancel(ctx), crowd.DestroyTimeout)
		defer cancel()
		if eerr := merging.End(ectx); eerr != nil {
			err = errors.Join(err, fmt.Errorf("KSM's settings: %w; `tare clean` tries again", eerr))
		}
	}()
	mctx, cancel := context.WithTimeout(ctx, mergingTime)
	defer cancel()
	ksm, err := merging.Settle(mctx)
	if err != nil {
		return w, notebook.Say("ksm", "cause", err), nil
	}
	if w, err = s.scales.weigh(ctx, guests, s.Treatment, as); err != nil {
		return w, notebook.ErrorMessage(err), nil
	}
	w.Guests, w.KSM = len(guests), ksm
	return w, nil, nil
}
