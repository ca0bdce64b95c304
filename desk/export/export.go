// Package export writes the raw data of folders: one row for each trial, warm-ups and failures included, with
// everything about its treatment, guest and host that an analysis elsewhere needs. It streams; memory does not grow
// with the folders, but for what is known of their guests.
package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"tare/notebook"
)

// Format is a file format of an export.
type Format string

const (
	CSV     Format = "csv"     // with a heading; lists, parameters and figures as JSON, a NUL byte in a text as ␀
	JSON    Format = "json"    // an array, one object a line
	Parquet Format = "parquet" // compressed with Zstandard
)

// Formats are those there are.
var Formats = []Format{CSV, JSON, Parquet}

// Row is one trial. Its fields' JSON names are the columns' names in every format. Pointers are null where there is
// no value: what bare metal does not have, and the value of a trial that failed.
type Row struct {
	Folder         string             `json:"folder" parquet:"folder,dict"`
	Study          string             `json:"study" parquet:"study,dict"`
	HostID         string             `json:"host_id" parquet:"host_id,dict"`
	Host           string             `json:"host" parquet:"host,dict"`
	Treatment      string             `json:"treatment" parquet:"treatment,dict"`
	Workload       string             `json:"workload" parquet:"workload,dict"`
	Params         map[string]string  `json:"params" parquet:"params,json"`
	Platform       string             `json:"platform" parquet:"platform,dict"`
	Engine         *string            `json:"engine" parquet:"engine,dict,optional"`
	Accelerator    *string            `json:"accelerator" parquet:"accelerator,dict,optional"`
	Provisioning   *string            `json:"provisioning" parquet:"provisioning,dict,optional"`
	Instance       string             `json:"instance" parquet:"instance,dict"`
	Cores          float64            `json:"cores" parquet:"cores"`
	Memory         int64              `json:"memory" parquet:"memory"` // bytes
	Network        *string            `json:"network" parquet:"network,dict,optional"`
	Isolation      *string            `json:"isolation" parquet:"isolation,dict,optional"` // rung of the isolation ladder: the topmost of its layers
	HostCores      *int64             `json:"host_cores" parquet:"host_cores,optional"`    // CPUs of the host that were online meanwhile
	CHR            *float64           `json:"chr" parquet:"chr,optional"`                  // cores over host_cores
	AA             bool               `json:"aa" parquet:"aa"`
	Representative bool               `json:"representative" parquet:"representative"` // false under software emulation
	Image          string             `json:"image" parquet:"image,dict"`              // digest
	Input          *string            `json:"input" parquet:"input,dict,optional"`     // digest
	Round          int64              `json:"round" parquet:"round"`
	Guest          *string            `json:"guest" parquet:"guest,dict,optional"` // null where none could be made
	Kernel         *string            `json:"kernel" parquet:"kernel,dict,optional"`
	ProvisionS     *float64           `json:"provision_s" parquet:"provision_s,optional"` // of the guest; seconds
	RulerCostS     *float64           `json:"ruler_cost_s" parquet:"ruler_cost_s,optional"`
	ReadyS         *float64           `json:"ready_s" parquet:"ready_s,optional"` // of the guest's service, until it answered; seconds
	Trial          int64              `json:"trial" parquet:"trial"`
	Warmup         bool               `json:"warmup" parquet:"warmup"`
	Explained      bool               `json:"explained" parquet:"explained"` // probes looked on: it feeds no mean and no ratio
	Start          time.Time          `json:"start" parquet:"start,timestamp(nanosecond)"`
	Command        []string           `json:"command" parquet:"command,list"`
	Metric         string             `json:"metric" parquet:"metric,dict"`
	Unit           string             `json:"unit" parquet:"unit,dict"`
	Value          *float64           `json:"value" parquet:"value,optional"`
	Figures        map[string]float64 `json:"figures" parquet:"figures,json"` // further ones, by name
	ElapsedS       float64            `json:"elapsed_s" parquet:"elapsed_s"`
	HostS          float64            `json:"host_s" parquet:"host_s"`
	Failure        *string            `json:"failure" parquet:"failure,dict,optional"`
	Exit           int64              `json:"exit" parquet:"exit"`
	Signal         *string            `json:"signal" parquet:"signal,dict,optional"`
	UserS          float64            `json:"user_s" parquet:"user_s"`
	SystemS        float64            `json:"system_s" parquet:"system_s"`
	MaxRSS         int64              `json:"max_rss" parquet:"max_rss"` // bytes
	MinFlt         int64              `json:"minflt" parquet:"minflt"`
	MajFlt         int64              `json:"majflt" parquet:"majflt"`
	VCSw           int64              `json:"vcsw" parquet:"vcsw"`
	IVCSw          int64              `json:"ivcsw" parquet:"ivcsw"`
	LoadCPUS       *float64           `json:"load_cpu_s" parquet:"load_cpu_s,optional"`   // user and system time of what applied the load
	LoadShared     *bool              `json:"load_shared" parquet:"load_shared,optional"` // it could use CPUs that the guest could use
	Wall           map[string]float64 `json:"wall" parquet:"wall,json"`                   // of an explained trial: what its time went on; seconds, by notebook.Walls
	Probes         map[string]float64 `json:"probes" parquet:"probes,json"`               // of an explained trial: the probes' figures, by name
	Lost           *int64             `json:"lost_events" parquet:"lost_events,optional"` // that the probes lost
	Output         *string            `json:"output" parquet:"output,optional"`
	Warnings       []string           `json:"warnings" parquet:"warnings,list"`
}

// rowGroup is how many rows of Parquet are held in memory until they are written.
const rowGroup = 20_000

// Write writes the trials of the folders, in their order. After an error what w has is not whole.
func Write(w io.Writer, dirs []string, f Format) error {
	if len(dirs) == 0 {
		return errors.New("no results folder was named")
	}
	var put func(*Row) error
	var end func() error
	switch f {
	case CSV:
		put, end = writeCSV(w)
	case JSON:
		put, end = writeJSON(w)
	case Parquet:
		put, end = writeParquet(w)
	default:
		return fmt.Errorf("unknown format %q: expected one of %v", f, Formats)
	}
	for _, dir := range dirs {
		if err := rows(dir, put); err != nil {
			return err
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
			Params: t.Params, Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
			Provisioning: word(t.Provisioning), Instance: t.Instance.Name, Cores: t.Instance.Cores, Memory: t.Instance.Memory,
			Network: word(t.Network), Isolation: word(t.Isolation), AA: t.AA, Representative: t.Representative(), Image: image.Digest, Input: word(image.Input), Metric: metric.Name, Unit: metric.Unit,
		}
		if r.Params == nil {
			r.Params = map[string]string{}
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
	return f.Trials(func(t *notebook.Trial) error {
		r := treatments[t.Treatment]
		r.Round, r.Guest, r.Trial, r.Warmup, r.Explained, r.Start = int64(t.Round), word(t.Guest), int64(t.Index), t.Warmup, t.Explained, t.Start
		if g := guests[t.Guest]; g != nil {
			r.Kernel, r.ProvisionS = word(g.Kernel), &g.ProvisionS
			if g.RulerCostN > 0 {
				r.RulerCostS = &g.RulerCostS
			}
			if g.ReadyS > 0 {
				r.ReadyS = &g.ReadyS
			}
		}
		r.Command, r.Warnings = list(t.Command), list(t.Warnings)
		if t.Failure == "" {
			r.Value = &t.Value
		}
		if r.Figures = t.Figures; r.Figures == nil {
			r.Figures = map[string]float64{}
		}
		r.ElapsedS, r.HostS, r.Failure, r.Exit, r.Signal, r.Output = t.ElapsedS, t.HostS, word(t.Failure), int64(t.Exit), word(t.Signal), word(t.Output)
		u := t.Usage
		r.UserS, r.SystemS, r.MaxRSS, r.MinFlt, r.MajFlt, r.VCSw, r.IVCSw = u.UserS, u.SystemS, u.MaxRSS, u.MinFlt, u.MajFlt, u.VCSw, u.IVCSw
		if l := t.Load; l != nil {
			cpu := l.UserS + l.SystemS
			r.LoadCPUS, r.LoadShared = &cpu, &l.Shared
		}
		r.Wall, r.Probes = map[string]float64{}, map[string]float64{}
		if p := t.Probes; p != nil {
			r.Lost = &p.Lost
			maps.Copy(r.Wall, p.Wall)
			maps.Copy(r.Probes, p.Figures)
		}
		return put(&r)
	})
}

func word(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func writeJSON(w io.Writer) (put func(*Row) error, end func() error) {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	before := "[\n" // of the next row; its line's end is the encoder's
	put = func(r *Row) error {
		if _, err := b.WriteString(before); err != nil {
			return err
		}
		before = ","
		return e.Encode(r)
	}
	end = func() error {
		if before != "," {
			before = "[\n]\n"
		} else {
			before = "]\n"
		}
		if _, err := b.WriteString(before); err != nil {
			return err
		}
		return b.Flush()
	}
	return put, end
}

// column is one of CSV's.
type column struct {
	name string
	cell func(*Row) string
}

func columns() []column {
	text := func(s string) string { return strings.ReplaceAll(s, "\x00", "␀") }
	maybe := func(s *string) string {
		if s == nil {
			return ""
		}
		return text(*s)
	}
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	maybeNumber := func(f *float64) string {
		if f == nil {
			return ""
		}
		return number(*f)
	}
	inJSON := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // lists and maps of strings, and of numbers that were read from JSON, always can be written
		}
		return string(b)
	}
	return []column{
		{"folder", func(r *Row) string { return text(r.Folder) }},
		{"study", func(r *Row) string { return text(r.Study) }},
		{"host_id", func(r *Row) string { return text(r.HostID) }},
		{"host", func(r *Row) string { return text(r.Host) }},
		{"treatment", func(r *Row) string { return text(r.Treatment) }},
		{"workload", func(r *Row) string { return text(r.Workload) }},
		{"params", func(r *Row) string { return inJSON(r.Params) }},
		{"platform", func(r *Row) string { return text(r.Platform) }},
		{"engine", func(r *Row) string { return maybe(r.Engine) }},
		{"accelerator", func(r *Row) string { return maybe(r.Accelerator) }},
		{"provisioning", func(r *Row) string { return maybe(r.Provisioning) }},
		{"instance", func(r *Row) string { return text(r.Instance) }},
		{"cores", func(r *Row) string { return number(r.Cores) }},
		{"memory", func(r *Row) string { return whole(r.Memory) }},
		{"network", func(r *Row) string { return maybe(r.Network) }},
		{"isolation", func(r *Row) string { return maybe(r.Isolation) }},
		{"host_cores", func(r *Row) string {
			if r.HostCores == nil {
				return ""
			}
			return whole(*r.HostCores)
		}},
		{"chr", func(r *Row) string { return maybeNumber(r.CHR) }},
		{"aa", func(r *Row) string { return strconv.FormatBool(r.AA) }},
		{"representative", func(r *Row) string { return strconv.FormatBool(r.Representative) }},
		{"image", func(r *Row) string { return text(r.Image) }},
		{"input", func(r *Row) string { return maybe(r.Input) }},
		{"round", func(r *Row) string { return whole(r.Round) }},
		{"guest", func(r *Row) string { return maybe(r.Guest) }},
		{"kernel", func(r *Row) string { return maybe(r.Kernel) }},
		{"provision_s", func(r *Row) string { return maybeNumber(r.ProvisionS) }},
		{"ruler_cost_s", func(r *Row) string { return maybeNumber(r.RulerCostS) }},
		{"ready_s", func(r *Row) string { return maybeNumber(r.ReadyS) }},
		{"trial", func(r *Row) string { return whole(r.Trial) }},
		{"warmup", func(r *Row) string { return strconv.FormatBool(r.Warmup) }},
		{"explained", func(r *Row) string { return strconv.FormatBool(r.Explained) }},
		{"start", func(r *Row) string { return r.Start.Format(time.RFC3339Nano) }},
		{"command", func(r *Row) string { return inJSON(r.Command) }},
		{"metric", func(r *Row) string { return text(r.Metric) }},
		{"unit", func(r *Row) string { return text(r.Unit) }},
		{"value", func(r *Row) string { return maybeNumber(r.Value) }},
		{"figures", func(r *Row) string { return inJSON(r.Figures) }},
		{"elapsed_s", func(r *Row) string { return number(r.ElapsedS) }},
		{"host_s", func(r *Row) string { return number(r.HostS) }},
		{"failure", func(r *Row) string { return maybe(r.Failure) }},
		{"exit", func(r *Row) string { return whole(r.Exit) }},
		{"signal", func(r *Row) string { return maybe(r.Signal) }},
		{"user_s", func(r *Row) string { return number(r.UserS) }},
		{"system_s", func(r *Row) string { return number(r.SystemS) }},
		{"max_rss", func(r *Row) string { return whole(r.MaxRSS) }},
		{"minflt", func(r *Row) string { return whole(r.MinFlt) }},
		{"majflt", func(r *Row) string { return whole(r.MajFlt) }},
		{"vcsw", func(r *Row) string { return whole(r.VCSw) }},
		{"ivcsw", func(r *Row) string { return whole(r.IVCSw) }},
		{"load_cpu_s", func(r *Row) string { return maybeNumber(r.LoadCPUS) }},
		{"load_shared", func(r *Row) string {
			if r.LoadShared == nil {
				return ""
			}
			return strconv.FormatBool(*r.LoadShared)
		}},
		{"wall", func(r *Row) string { return inJSON(r.Wall) }},
		{"probes", func(r *Row) string { return inJSON(r.Probes) }},
		{"lost_events", func(r *Row) string {
			if r.Lost == nil {
				return ""
			}
			return whole(*r.Lost)
		}},
		{"output", func(r *Row) string { return maybe(r.Output) }},
		{"warnings", func(r *Row) string { return inJSON(r.Warnings) }},
	}
}

func writeCSV(w io.Writer) (put func(*Row) error, end func() error) {
	c := csv.NewWriter(w)
	cols := columns()
	cells := make([]string, len(cols))
	headed := false
	head := func() error {
		if headed {
			return nil
		}
		headed = true
		for i, col := range cols {
			cells[i] = col.name
		}
		return c.Write(cells)
	}
	put = func(r *Row) error {
		if err := head(); err != nil {
			return err
		}
		for i, col := range cols {
			cells[i] = col.cell(r)
		}
		return c.Write(cells)
	}
	end = func() error {
		if err := head(); err != nil {
			return err
		}
		c.Flush()
		return c.Error()
	}
	return put, end
}

func writeParquet(w io.Writer) (put func(*Row) error, end func() error) {
	p := parquet.NewGenericWriter[Row](w, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Zstd))
	one := make([]Row, 1)
	put = func(r *Row) error {
		one[0] = *r
		_, err := p.Write(one)
		return err
	}
	return put, p.Close
}
