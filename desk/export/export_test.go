package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"tare/notebook"
)

var at = time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC)

// folder has bare metal and a pinned container, two rounds, a warm-up and a failure with an awkward output.
func folder(t *testing.T, trials bool) string {
	t.Helper()
	large := notebook.Instance{Name: "large", Cores: 2, Memory: 8e9}
	dir := filepath.Join(t.TempDir(), "R")
	w, err := notebook.Create(dir, notebook.Study{
		Name: "quick", Metrics: map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}},
		Images: map[string]notebook.Image{"ffmpeg": {Digest: "sha256:1", Input: "sha256:2"}},
		Treatments: []notebook.Treatment{
			{ID: "bm", Workload: "ffmpeg", Platform: "bm", Instance: large},
			{ID: "cn", Workload: "ffmpeg", Params: map[string]string{"segments": "30", "b": `"x"`}, Platform: "cn", Engine: "crun", Provisioning: "pinned", Instance: large, Network: "host", Isolation: "full", HostCores: 4},
		},
	}, notebook.Host{ID: "h", Hostname: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	if trials {
		errs := []error{
			w.Guest(notebook.Guest{ID: "g0", Treatment: "bm", Kernel: "6.18", ProvisionS: 0.5, RulerCostS: 4e-4, RulerCostN: 9, ReadyS: 1.5}),
			w.Trial(notebook.Trial{Treatment: "bm", Guest: "g0", Warmup: true, Start: at, Value: 5}),
			w.Trial(notebook.Trial{Treatment: "bm", Guest: "g0", Start: at, Command: []string{"ffmpeg", "a, \"b\""}, Value: 4.25, ElapsedS: 4.2, HostS: 4.3,
				Usage:   notebook.Usage{UserS: 1, SystemS: 2, MaxRSS: 3, MinFlt: 4, MajFlt: 5, VCSw: 6, IVCSw: 7},
				Figures: map[string]float64{"p99": 9.5, "errors": 0}, Load: &notebook.Load{CPUs: []int{0, 1}, Shared: true, UserS: 0.5, SystemS: 0.25}}),
			w.Trial(notebook.Trial{Treatment: "bm", Guest: "g0", Traced: true, Start: at, Value: 6, Trace: &notebook.Trace{
				Wall: map[string]float64{"user": 5}, Figures: map[string]float64{"switches": 7}, Lost: 3}}),
			w.Trial(notebook.Trial{Treatment: "cn", Round: 1, Index: 2, Start: at, Failure: notebook.TextMessage("killed"), Exit: -1, Signal: "SIGKILL", Output: "=1+1\n\x00\"é", Warnings: []*notebook.Message{notebook.TextMessage("a"), notebook.Say("clocks-differ", "guest", 1, "host", 2.25)}}),
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func written(t *testing.T, f Format, dirs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, dirs, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// expected is what the rows must be, read back from any format.
func expected(dir string) []Row {
	s := func(s string) *string { return &s }
	n := func(f float64) *float64 { return &f }
	bm := Row{
		Folder: dir, Study: "quick", HostID: "h", Host: "bench", Treatment: "bm", Workload: "ffmpeg", Params: map[string]string{}, Platform: "bm",
		Instance: "large", Cores: 2, Memory: 8e9, Image: "sha256:1", Input: s("sha256:2"), Guest: s("g0"), Kernel: s("6.18"),
		ProvisionS: n(0.5), RulerCostS: n(4e-4), ReadyS: n(1.5), Start: at, Command: []string{}, Metric: "execution time", Unit: "s", Figures: map[string]float64{},
		Warnings: []string{}, Wall: map[string]float64{}, Trace: map[string]float64{},
	}
	warm, good, looked, bad := bm, bm, bm, bm
	lost := int64(3)
	looked.Traced, looked.Value, looked.Wall, looked.Trace, looked.Lost = true, n(6), map[string]float64{"user": 5}, map[string]float64{"switches": 7}, &lost
	warm.Warmup, warm.Value = true, n(5)
	good.Command, good.Value, good.ElapsedS, good.HostS = []string{"ffmpeg", "a, \"b\""}, n(4.25), 4.2, 4.3
	good.UserS, good.SystemS, good.MaxRSS, good.MinFlt, good.MajFlt, good.VCSw, good.IVCSw = 1, 2, 3, 4, 5, 6, 7
	cores, shared := int64(4), true
	good.Figures, good.LoadCPUS, good.LoadShared = map[string]float64{"p99": 9.5, "errors": 0}, n(0.75), &shared
	bad.Network, bad.Isolation, bad.HostCores, bad.CHR = s("host"), s("full"), &cores, n(0.5)
	bad.Treatment, bad.Params, bad.Platform, bad.Engine, bad.Provisioning = "cn", map[string]string{"segments": "30", "b": `"x"`}, "cn", s("crun"), s("pinned")
	bad.Guest, bad.Kernel, bad.ProvisionS, bad.RulerCostS, bad.ReadyS = nil, nil, nil, nil, nil
	bad.Round, bad.Trial, bad.Failure, bad.Exit, bad.Signal, bad.Output, bad.Warnings = 1, 2, s("killed"), -1, s("SIGKILL"), s("=1+1\n\x00\"é"), []string{"a", "the guest's clock says 1 s, the host's 2.25 s"}
	return []Row{warm, good, looked, bad}
}

func same(t *testing.T, got, want []Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := reflect.ValueOf(got[i]), reflect.ValueOf(want[i])
		for f := range w.NumField() {
			if !reflect.DeepEqual(g.Field(f).Interface(), w.Field(f).Interface()) {
				t.Errorf("row %d, %s: %+v, want %+v", i, w.Type().Field(f).Name, reflect.Indirect(g.Field(f)), reflect.Indirect(w.Field(f)))
			}
		}
	}
}

func TestJSON(t *testing.T) {
	dir := folder(t, true)
	var got []Row
	if err := json.Unmarshal(written(t, jsonFormat, dir), &got); err != nil {
		t.Fatal(err)
	}
	same(t, got, expected(dir))
	var none []Row
	if err := json.Unmarshal(written(t, jsonFormat, folder(t, false)), &none); err != nil || none == nil || len(none) != 0 {
		t.Errorf("without trials: %v, %v", none, err)
	}
}

func TestParquet(t *testing.T) {
	dir := folder(t, true)
	data := written(t, parquetFormat, dir)
	got, err := parquet.Read[Row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Start = got[i].Start.UTC()
	}
	same(t, got, expected(dir))
	data = written(t, parquetFormat, folder(t, false))
	if none, err := parquet.Read[Row](bytes.NewReader(data), int64(len(data))); err != nil || len(none) != 0 {
		t.Errorf("without trials: %v, %v", none, err)
	}
}

func TestCSV(t *testing.T) {
	dir := folder(t, true)
	got, err := csv.NewReader(bytes.NewReader(written(t, csvFormat, dir, dir))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 9 {
		t.Fatalf("%d lines of two folders, want a heading and 8", len(got))
	}
	// Columns and their order are those of JSON and Parquet.
	row := reflect.TypeFor[Row]()
	for i := range row.NumField() {
		if name := row.Field(i).Tag.Get("json"); i >= len(got[0]) || got[0][i] != name || !strings.HasPrefix(row.Field(i).Tag.Get("parquet"), name) {
			t.Fatalf("column %d is not %q everywhere", i, name)
		}
	}
	if len(got[0]) != row.NumField() {
		t.Errorf("%d columns, want %d", len(got[0]), row.NumField())
	}
	at := func(line int, name string) string {
		for i, n := range got[0] {
			if n == name {
				return got[line][i]
			}
		}
		t.Fatalf("no column %q", name)
		return ""
	}
	for i, r := range expected(dir) {
		want := map[string]string{
			"treatment": r.Treatment, "instance": "large", "memory": "8000000000", "warmup": fmt.Sprint(r.Warmup), "start": "2026-11-21T07:00:00.123456789Z",
			"value": []string{"5", "4.25", "6", ""}[i], "exit": fmt.Sprint(r.Exit), "provisioning": []string{"", "", "", "pinned"}[i],
			"command": []string{"[]", `["ffmpeg","a, \"b\""]`, "[]", "[]"}[i], "params": []string{"{}", "{}", "{}", `{"b":"\"x\"","segments":"30"}`}[i],
			"output": []string{"", "", "", "=1+1\n␀\"é"}[i], "involuntary_ctxt_switches": fmt.Sprint(r.IVCSw), "provision_s": []string{"0.5", "0.5", "0.5", ""}[i],
			"network": []string{"", "", "", "host"}[i], "host_cores": []string{"", "", "", "4"}[i], "chr": []string{"", "", "", "0.5"}[i], "service_ready_s": []string{"1.5", "1.5", "1.5", ""}[i],
			"secondary_metrics": []string{"{}", `{"errors":0,"p99":9.5}`, "{}", "{}"}[i], "load_cpu_s": []string{"", "0.75", "", ""}[i], "load_shared": []string{"", "true", "", ""}[i],
			"isolation": []string{"", "", "", "full"}[i], "traced": fmt.Sprint(i == 2), "time_breakdown": []string{"{}", "{}", `{"user":5}`, "{}"}[i],
			"tracer_metrics": []string{"{}", "{}", `{"switches":7}`, "{}"}[i], "lost_events": []string{"", "", "3", ""}[i],
		}
		for name, w := range want {
			if g := at(i+1, name); g != w {
				t.Errorf("row %d, %s: %q, want %q", i, name, g, w)
			}
		}
	}
	if none := written(t, csvFormat, folder(t, false)); bytes.Count(none, []byte("\n")) != 1 {
		t.Errorf("without trials: %q", none)
	}
}

type full struct{ after int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrors(t *testing.T) {
	dir := folder(t, true)
	for _, f := range Formats {
		if err := Write(&full{}, []string{dir}, f); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: %v", f.Name, err)
		}
		if err := Write(&full{1 << 20}, []string{t.TempDir()}, f); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
			t.Errorf("%s of no results: %v", f.Name, err)
		}
	}
	if _, err := FormatOf("xlsx"); err == nil || !strings.Contains(err.Error(), "csv, json, parquet") {
		t.Error(err)
	}
	if err := Write(&full{1 << 20}, nil, csvFormat); err == nil {
		t.Error("no folder")
	}
}
