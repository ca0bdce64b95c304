// Package export writes for other programs: the raw data of folders in several formats, and the answers of the desk as
// JSON. Raw data is one row for each trial, warm-ups and failures included, with everything about its treatment, guest and
// host that an analysis elsewhere needs. It streams: memory grows only with the number of the folders'
// guests.
package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"tare/desk/words"
	"tare/notebook"
)

// Format is a file format of an export.
type Format struct {
	Name   string // as --format and a file's ending have it
	Binary bool   // it is not for a terminal

	// open begins a file: put writes a row, end what is left.
	open func(w io.Writer) (put func(*Row) error, end func() error)
	// shown is open for a terminal, which obeys control characters; nil: open writes none.
	shown func(w io.Writer) (put func(*Row) error, end func() error)
}

// OnTerminal is the format as it is shown on a terminal: control characters in recorded texts become spaces.
func (f Format) OnTerminal() Format {
	if f.shown != nil {
		f.open = f.shown
	}
	return f
}

// Formats are those there are: each has a file of its own, and its line here.
var Formats = []Format{csvFormat, jsonFormat, parquetFormat}

// FormatOf gives the format of a name; the error says which there are.
func FormatOf(name string) (Format, error) {
	for _, f := range Formats {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("unknown format %q: must be one of %s", name, strings.Join(Names(), ", "))
}

// Names are those of the formats.
func Names() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// Row is one trial. Its fields' JSON names are the columns' names in every format. Pointers are null where there is
// no value: what bare metal does not have, and the value of a trial that failed.
type Row struct {
	Folder       string             `json:"folder" parquet:"folder,dict"`
	Study        string             `json:"study" parquet:"study,dict"`
	HostID       string             `json:"host_id" parquet:"host_id,dict"`
	Host         string             `json:"host" parquet:"host,dict"`
	Treatment    string             `json:"treatment" parquet:"treatment,dict"`
	Workload     string             `json:"workload" parquet:"workload,dict"`
	Params       map[string]string  `json:"params" parquet:"params,json"`
	Platform     string             `json:"platform" parquet:"platform,dict"`
	Engine       *string            `json:"engine" parquet:"engine,dict,optional"`
	Accelerator  *string            `json:"accelerator" parquet:"accelerator,dict,optional"`
	Provisioning *string            `json:"provisioning" parquet:"provisioning,dict,optional"`
	Instance     string             `json:"instance" parquet:"instance,dict"`
	Cores        float64            `json:"cores" parquet:"cores"`
	Memory       int64              `json:"memory" parquet:"memory"` // bytes
	Network      *string            `json:"network" parquet:"network,dict,optional"`
	Isolation    *string            `json:"isolation" parquet:"isolation,dict,optional"` // rung of the isolation ladder: the topmost of its layers
	Machine      *string            `json:"machine" parquet:"machine,dict,optional"`     // of a VM, where it is not the usual one
	HostCores    *int64             `json:"host_cores" parquet:"host_cores,optional"`    // CPUs of the host that were online during the trials
	CHR          *float64           `json:"chr" parquet:"chr,optional"`                  // cores over host_cores
	AA           bool               `json:"aa_control" parquet:"aa_control"`
	Emulated     bool               `json:"emulated" parquet:"emulated"`         // a VM without KVM: its times do not represent a VM's cost
	Image        string             `json:"image" parquet:"image,dict"`          // digest
	Input        *string            `json:"input" parquet:"input,dict,optional"` // digest
	Round        int64              `json:"round" parquet:"round"`
	Guest        *string            `json:"guest" parquet:"guest,dict,optional"` // null where none could be made
	Kernel       *string            `json:"kernel" parquet:"kernel,dict,optional"`
	ProvisionS   *float64           `json:"provision_s" parquet:"provision_s,optional"` // of the guest; seconds
	RulerCostS   *float64           `json:"ruler_cost_s" parquet:"ruler_cost_s,optional"`
	ReadyS       *float64           `json:"service_ready_s" parquet:"service_ready_s,optional"` // of the guest's service, until it answered; seconds
	Trial        int64              `json:"trial" parquet:"trial"`
	Warmup       bool               `json:"warmup" parquet:"warmup"`
	Traced       bool               `json:"traced" parquet:"traced"` // it feeds no mean and no ratio
	Start        time.Time          `json:"start" parquet:"start,timestamp(nanosecond)"`
	Command      []string           `json:"command" parquet:"command,list"`
	Metric       string             `json:"metric" parquet:"metric,dict"`
	Unit         string             `json:"unit" parquet:"unit,dict"`
	Value        *float64           `json:"value" parquet:"value,optional"`
	Figures      map[string]float64 `json:"secondary_metrics" parquet:"secondary_metrics,json"` // secondary metrics, by name
	ElapsedS     float64            `json:"elapsed_s" parquet:"elapsed_s"`
	HostS        float64            `json:"host_s" parquet:"host_s"`
	Failure      *string            `json:"failure" parquet:"failure,dict,optional"`
	Exit         int64              `json:"exit" parquet:"exit"`
	Signal       *string            `json:"signal" parquet:"signal,dict,optional"`
	UserS        float64            `json:"user_s" parquet:"user_s"`
	SystemS      float64            `json:"system_s" parquet:"system_s"`
	MaxRSS       int64              `json:"max_rss" parquet:"max_rss"` // bytes
	MinFlt       int64              `json:"minflt" parquet:"minflt"`
	MajFlt       int64              `json:"majflt" parquet:"majflt"`
	VCSw         int64              `json:"voluntary_ctxt_switches" parquet:"voluntary_ctxt_switches"`
	IVCSw        int64              `json:"involuntary_ctxt_switches" parquet:"involuntary_ctxt_switches"`
	LoadCPUS     *float64           `json:"load_cpu_s" parquet:"load_cpu_s,optional"`             // user and system time of what applied the load
	LoadShared   *bool              `json:"load_shared" parquet:"load_shared,optional"`           // it could use CPUs that the guest could use
	Wall         map[string]float64 `json:"time_breakdown" parquet:"time_breakdown,json"`         // of a traced trial: what its time went on; seconds, by notebook.Walls
	Trace        map[string]float64 `json:"tracer_metrics" parquet:"tracer_metrics,json"`         // of a traced trial: the tracers' metrics, by name
	Lost         *int64             `json:"lost_events" parquet:"lost_events,optional"`           // that the tracers lost
	StolenS      *float64           `json:"steal_s" parquet:"steal_s,optional"`                   // of the host's CPUs' time meanwhile, by the machine below; null where not known
	OthersS      *float64           `json:"host_other_cpu_s" parquet:"host_other_cpu_s,optional"` // of the same, by what was not of the guest
	BesideOfS    *float64           `json:"host_cpu_s" parquet:"host_cpu_s,optional"`             // all of it, idle time too
	Output       *string            `json:"output" parquet:"output,optional"`
	Warnings     []string           `json:"warnings" parquet:"warnings,list"`
}

// Write writes the trials of the folders, in their order. After an error what w has is not whole.
func Write(w io.Writer, dirs []string, f Format) error {
	if len(dirs) == 0 {
		return errors.New("no results folder was named")
	}
	put, end := f.open(w)
	for _, dir := range dirs {
		if err := rows(dir, put); err != nil {
			return err
		}
	}
	return end()
}

// WriteMany is Write for the folders of a fleet. A folder that cannot be read, or not to its end, is passed to skipped with the number of
// its rows that were written, and the rest goes on. An error of
// writing ends it.
func WriteMany(w io.Writer, dirs []string, f Format, skipped func(rows int, err error)) error {
	var failed error // of writing
	put, end := f.open(w)
	for _, dir := range dirs {
		n := 0
		err := rows(dir, func(r *Row) error {
			failed = put(r)
			n++
			return failed
		})
		if failed != nil {
			return failed
		}
		if err != nil {
			skipped(n, err)
		}
	}
	return end()
}

// rows gives each trial of a folder. The row is only lent.
func rows(dir string, put func(*Row) error) error {
	f, err := notebook.Read(dir)
	if err != nil {
		return err
	}
	treatments := map[string]Row{}
	for _, t := range f.Study.Treatments {
		metric, image := f.Study.Metrics[t.Workload], f.Study.Image(t)
		r := Row{
			Folder: dir, Study: f.Study.Name, HostID: f.Host.ID, Host: f.Host.Hostname, Treatment: t.ID, Workload: t.Workload,
			Params: params(t.Assigned()), Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
			Provisioning: word(t.Provisioning), Instance: t.Instance.Name, Cores: t.Instance.Cores, Memory: t.Instance.Memory,
			Network: word(t.Network), Isolation: word(t.Isolation), Machine: word(t.Machine), AA: t.AA, Emulated: !t.Representative(), Image: image.Digest, Input: word(image.Input), Metric: words.Caption(metric.Name), Unit: metric.Unit,
		}
		if n := int64(cmp.Or(t.HostCores, len(f.Host.CPUs))); n > 0 {
			chr := f.Host.CHR(t)
			r.HostCores, r.CHR = &n, &chr
		}
		treatments[t.ID] = r
	}
	guests := map[string]*notebook.Guest{}
	for i := range f.Guests {
		guests[f.Guests[i].ID] = &f.Guests[i]
	}
	captions := map[string]string{} // of the metrics of trials
	return f.Trials(func(t *notebook.Trial) error {
		r := treatments[t.Treatment]
		r.Round, r.Guest, r.Trial, r.Warmup, r.Traced, r.Start = int64(t.Round), word(t.Guest), int64(t.Index), t.Warmup, t.Traced, t.Start
		if g := guests[t.Guest]; g != nil {
			r.Kernel, r.ProvisionS = word(g.Kernel), &g.ProvisionS
			if g.RulerCostN > 0 {
				r.RulerCostS = &g.RulerCostS
			}
			if g.ReadyS > 0 {
				r.ReadyS = &g.ReadyS
			}
		}
		r.Command, r.Warnings = list(t.Command), list(words.MessagesOf(t.Warnings))
		if t.Failure == nil {
			r.Value = &t.Value
		}
		r.Figures = make(map[string]float64, len(t.Figures))
		for name, v := range t.Figures {
			caption, known := captions[name]
			if !known {
				caption = words.Caption(name)
				captions[name] = caption
			}
			r.Figures[caption] = v
		}
		r.ElapsedS, r.HostS, r.Failure, r.Exit, r.Signal, r.Output = t.ElapsedS, t.HostS, word(words.Message(t.Failure)), int64(t.Exit), word(t.Signal), word(t.Output)
		u := t.Usage
		r.UserS, r.SystemS, r.MaxRSS, r.MinFlt, r.MajFlt, r.VCSw, r.IVCSw = u.UserS, u.SystemS, u.MaxRSS, u.MinFlt, u.MajFlt, u.VCSw, u.IVCSw
		if l := t.Load; l != nil {
			cpu := l.UserS + l.SystemS
			r.LoadCPUS, r.LoadShared = &cpu, &l.Shared
		}
		if b := t.Beside; b != nil {
			r.StolenS, r.OthersS, r.BesideOfS = &b.StolenS, &b.OthersS, &b.OfS
		}
		r.Wall, r.Trace = map[string]float64{}, map[string]float64{}
		if p := t.Trace; p != nil {
			r.Lost = &p.Lost
			maps.Copy(r.Wall, p.Wall)
			maps.Copy(r.Trace, p.Figures)
		}
		return put(&r)
	})
}
