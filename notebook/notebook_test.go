package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC)

func someStudy() Study {
	return Study{
		Version: Version, Tare: "test", Name: "quick", Source: "name: quick\n", Hash: "sha256:00", Seed: 7, Created: at,
		Design:  Design{Floor: 5, Cap: 20, Precision: 0.05, Trials: 3, Warmups: 1, TimeoutS: 60},
		Metrics: map[string]Metric{"ffmpeg": {Name: "execution time", Unit: "s"}},
		Treatments: []Treatment{
			{ID: "bm", Workload: "ffmpeg", Platform: BM, Instance: Instance{Name: "large", Cores: 2, Memory: 8e9}},
			{ID: "cn", Workload: "ffmpeg", Params: map[string]string{"segments": "30"}, Platform: CN, Engine: "crun",
				Provisioning: Pinned, Instance: Instance{Name: "large", Cores: 2, Memory: 8e9}},
		},
		Images: map[string]Image{"ffmpeg": {Reference: "debian", Digest: "sha256:11"}},
	}
}

func someHost() Host {
	return Host{ID: "h1", Hostname: "bench", Kernel: "6.18", Arch: "amd64", CPUs: []CPU{{ID: 0}, {ID: 1, Core: 1}}, Memory: 24e9}
}

// someTrial makes trials with every field, awkward text among them.
func someTrial(i int) Trial {
	t := Trial{
		Treatment: []string{"bm", "cn"}[i%2], Round: i / 6, Guest: fmt.Sprintf("g%d", i/3), Index: i % 3, Warmup: i%3 == 0,
		Start: at.Add(time.Duration(i) * time.Second), Command: []string{"ffmpeg", "-i", "a \"b\" <c> é\n"},
		Value: 4.25 + float64(i)/7, ElapsedS: 4.2 + float64(i)/7, HostS: 4.3,
		Usage: Usage{UserS: 1e-7, SystemS: 0.5, MaxRSS: 1 << 40, MinFlt: 3, MajFlt: 4, VCSw: 5, IVCSw: 6},
	}
	if i%4 == 3 {
		t.Traced, t.Figures, t.Load = true, map[string]float64{"p99": 1.5}, &Load{CPUs: []int{0, 3}, Shared: true, UserS: 0.5}
		seen := Trace{Looked: DefaultTracers, Missing: map[string]*Message{TracerIO: TextMessage("„no“ <device>"), TracerCPU: Say("times-in-steps", "figures", "steal_s", "step", 0.01)}, Tier: TierEvents, Wall: map[string]float64{WallUser: 4, WallCore: 0},
			Figures: map[string]float64{"switches": 7}, Spread: []Distribution{{Role: RoleWork, What: OffCPU, Of: WallCore, Unit: "s", Counts: []int64{0, 2, 1}, Sum: 1e-9}},
			Stacks: []Stack{{Frames: []string{"schedule", "do_wait"}, Seconds: 0.5, Count: 3}}, Lost: 2}
		t.Trace = &seen
		t.Trace.Inside = &Trace{Looked: []string{}, Wall: seen.Wall}
	}
	if i%5 == 4 {
		t.Failure, t.Exit, t.Signal, t.Output = TextMessage("killed for memory – „zu wenig“"), -1, "SIGKILL", "x\x00y\u2028\xff"
		t.Warnings = []*Message{Say("clocks-differ", "guest", 1.5, "host", 2), TextMessage("warm <cache>")}
	}
	return t
}

func written(t testing.TB, trials int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	w, err := Create(dir, someStudy(), someHost())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Session(Session{Time: at, Event: "start", Args: []string{"run", "quick"}}))
	for i := range trials {
		if i%3 == 0 {
			must(w.Guest(Guest{ID: fmt.Sprintf("g%d", i/3), Treatment: "bm", Start: at, Limits: Limits{CPUs: "0-1"}}))
		}
		must(w.Trial(someTrial(i)))
	}
	must(w.Session(Session{Time: at, Event: "end", Reason: Say("cap-on-rounds")}))
	must(w.Close())
	return dir
}

func readTrials(dir string) ([]Trial, error) {
	f, err := Read(dir)
	if err != nil {
		return nil, err
	}
	var all []Trial
	err = f.Trials(func(t *Trial) error {
		all = append(all, *t)
		return nil
	})
	return all, err
}

// throughJSON is what becomes of v by being written: invalid UTF-8 is replaced, for one.
func throughJSON[T any](t *testing.T, v T) T {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := written(t, 20)
	f, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.Study, someStudy()) || !reflect.DeepEqual(f.Host, someHost()) {
		t.Errorf("study or host changed: %+v %+v", f.Study, f.Host)
	}
	if len(f.Guests) != 7 || f.Guests[6].ID != "g6" || f.Guests[0].Limits.CPUs != "0-1" {
		t.Errorf("guests: %+v", f.Guests)
	}
	if len(f.Sessions) != 2 || !f.Sessions[1].Reason.Is("cap-on-rounds") {
		t.Errorf("sessions: %+v", f.Sessions)
	}
	all, err := readTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 20 {
		t.Fatalf("%d trials, want 20", len(all))
	}
	for i, got := range all {
		if want := throughJSON(t, someTrial(i)); !reflect.DeepEqual(got, want) {
			t.Errorf("trial %d:\n got %+v\nwant %+v", i, got, want)
		}
	}
}

// What Tare writes must take the fast way, or a million trials would be slow and nobody would notice.
func TestOwnLinesTakeTheFastWay(t *testing.T) {
	records := []any{
		&Guest{ID: "g", Treatment: "bm", Start: at, Limits: Limits{CPUs: "0-1", Quota: 0.5}, RulerCostS: 1e-4, RulerCostN: 20, Notes: []*Message{TextMessage("a")}},
		&Session{Time: at, Event: "start", Args: []string{"run"}},
	}
	for i := range 10 {
		trial := someTrial(i)
		records = append(records, &trial)
	}
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		kind := reflect.TypeOf(r).Elem()
		if d := (decoder{b: line}); !takerOf(kind)(&d, reflect.New(kind).Elem()) || d.i != len(line) {
			t.Errorf("not taken, at byte %d: %s", d.i, line)
		}
	}
}

func TestManyBlocksStayInOrder(t *testing.T) {
	dir := written(t, 1)
	var b bytes.Buffer
	const n = 20_000 // about 8 MiB
	for i := range n {
		line, err := json.Marshal(someTrial(i))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	path := filepath.Join(dir, trialsFile)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := readTrials(dir)
	if err != nil || len(all) != n {
		t.Fatalf("%d trials, %v", len(all), err)
	}
	for i, tr := range all {
		if want := someTrial(i); tr.Guest != want.Guest || tr.Index != want.Index || tr.Value != want.Value {
			t.Fatalf("trial %d is %+v", i, tr)
		}
	}
	// A damaged line far inside is an error with its number, whoever decodes it.
	lines := bytes.SplitAfter(b.Bytes(), []byte("\n"))
	lines[12_344] = append(bytes.Clone(lines[12_344][:40]), '\n')
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err = readTrials(dir)
	if err == nil || !strings.Contains(err.Error(), "trials.jsonl:12345: not a trial") {
		t.Errorf("error %v", err)
	}
	if len(all) != 12_344 {
		t.Errorf("%d trials before the damaged one", len(all))
	}
	// The reader's caller may end it.
	enough := errors.New("enough")
	f, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Trials(func(*Trial) error { return enough }); err != enough {
		t.Errorf("ended with %v", err)
	}
}

// A file cut at any byte, as a kill or a full disk can leave it, loses the torn record and no other; Open cuts it off
// and the next record follows the last whole one.
func TestEveryCut(t *testing.T) {
	dir := written(t, 2)
	path := filepath.Join(dir, trialsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) + 1 {
		if err := os.WriteFile(path, data[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Count(data[:cut], []byte("\n"))
		if all, err := readTrials(dir); err != nil || len(all) != whole {
			t.Fatalf("cut at %d: %d trials read, %v; want %d", cut, len(all), err, whole)
		}
		if f, err := Read(dir); err != nil || f.Torn != (cut > 0 && data[cut-1] != '\n') {
			t.Fatalf("cut at %d: torn %v, %v", cut, f.Torn, err)
		}
		w, err := Open(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err := errors.Join(w.Trial(someTrial(9)), w.Close()); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		all, err := readTrials(dir)
		if err != nil || len(all) != whole+1 || all[whole].Guest != someTrial(9).Guest {
			t.Fatalf("cut at %d, after going on: %d trials, %v; want %d", cut, len(all), err, whole+1)
		}
	}
}

// Folders of the first format hold sentences instead of messages. They can be read and continued. When one is continued, its version becomes
// the present one, because a Tare that knows only the first format would take a message for damage.
func TestFoldersOfTheFirstFormat(t *testing.T) {
	dir := written(t, 5)
	replace := func(file, old, by string) {
		t.Helper()
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(old)) {
			t.Fatalf("%s has no %s: %v", file, old, err)
		}
		if err := os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(by), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replace(studyFile, `"version": 2`, `"version": 1`)
	replace(trialsFile, `{"code":"clocks-differ","args":{"guest":1.5,"host":2}}`, `"the clocks differ by 2 %"`)
	replace(sessionsFile, `{"code":"cap-on-rounds"}`, `"failed: no disk"`)
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Trial(someTrial(9)), w.Session(Session{Time: at, Event: "end", Reason: TextMessage("precise enough")}), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := Read(dir)
	if err != nil || f.Study.Version != Version || !f.Sessions[1].Reason.Equal(Say("failed", "cause", "no disk")) || !f.Sessions[2].Reason.Is("precise-enough") {
		t.Errorf("%+v, %v", f, err)
	}
	all, err := readTrials(dir)
	if err != nil || len(all) != 6 || all[4].Warnings[0].Text() != "the clocks differ by 2 %" || !all[5].Warnings[0].Is("clocks-differ") {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestDamageIsAnErrorWithItsLine(t *testing.T) {
	for _, c := range []struct{ name, file, old, new, want string }{
		{"line torn in the middle", trialsFile, `,"usage"`, "\n" + `,"usage"`, "trials.jsonl:1: not a trial"},
		{"empty line", trialsFile, "\n", "\n\n", "trials.jsonl:2: not a trial"},
		{"zeroes", trialsFile, `"round":0`, "\"round\":\x00", "trials.jsonl:1: not a trial"},
		{"kind", trialsFile, `"round":0`, `"round":"0"`, "trials.jsonl:1: not a trial"},
		{"negative round", trialsFile, `"round":0`, `"round":-1`, "trials.jsonl:1: not a trial"},
		{"unknown treatment", trialsFile, `"treatment":"cn"`, `"treatment":"xy"`, `trials.jsonl:2: not a trial (changed or damaged? each line must be one JSON object, as Tare writes it): it is of the treatment "xy"`},
		{"damage in what a summary passes over", trialsFile, `"minflt":3`, `"minflt":3x`, "trials.jsonl:1: not a trial"},
		{"two on a line", trialsFile, "}\n{", "}{", "trials.jsonl:1: not a trial"},
		{"guest", guestsFile, `"id":"g0"`, `"id":""`, "guests.jsonl:1: not a guest"},
		{"session", sessionsFile, `"event":"end"`, `"event":"halt"`, "sessions.jsonl:2: not a session"},
		{"study's syntax", studyFile, `"seed": 7,`, `"seed": 7`, "study.json:8: not as Tare writes it"},
		{"study's kind", studyFile, `"seed": 7`, `"seed": "seven"`, "study.json:7: not as Tare writes it"},
		{"study's treatments", studyFile, `"id": "cn"`, `"id": "bm"`, `treatment 2 has the id "bm"`},
		{"newer", studyFile, `"version": 2`, `"version": 3`, "written by a newer Tare"},
		{"no study", studyFile, `"version": 2`, `"versions": 2`, "not a study of Tare's"},
		{"host", hostFile, `"arch": "amd64"`, `"arch": 64`, "host.json:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := written(t, 3)
			path := filepath.Join(dir, c.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(data, []byte(c.old)) {
				t.Fatalf("%s has no %q", c.file, c.old)
			}
			if err := os.WriteFile(path, bytes.Replace(data, []byte(c.old), []byte(c.new), 1), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err = readTrials(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestNotAFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "runs.csv")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "none"), file} {
		if Exists(d) {
			t.Errorf("%s holds no study", d)
		}
		if _, err := Read(d); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
			t.Errorf("Read: %v", err)
		}
		if d == file {
			continue // Open asks for a folder first
		}
		if _, err := Open(d); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
			t.Errorf("Open: %v", err)
		}
	}
	whole := written(t, 1)
	if !Exists(whole) {
		t.Errorf("%s holds a study", whole)
	}
	if err := os.Remove(filepath.Join(whole, trialsFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := readTrials(whole); err == nil || !strings.Contains(err.Error(), "trials.jsonl is missing") {
		t.Errorf("without trials: %v", err)
	}
}

func TestLineTooLong(t *testing.T) {
	dir := written(t, 1)
	path := filepath.Join(dir, trialsFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	long := someTrial(1)
	long.Output = strings.Repeat("x", MaxLine)
	if err := w.Trial(long); err == nil || !strings.Contains(err.Error(), "longer than a line may be") {
		t.Errorf("written: %v", err)
	}
	for _, pad := range []int{MaxLine + 1, 5 * MaxLine} {
		data := append(bytes.Clone(before), bytes.Repeat([]byte(" "), pad)...)
		if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readTrials(dir); err == nil || !strings.Contains(err.Error(), "trials.jsonl:2") || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("read: %v", err)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := written(t, 1)
	if _, err := Create(dir, someStudy(), someHost()); err == nil || !strings.Contains(err.Error(), "already holds a study") {
		t.Errorf("over a study: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(other, someStudy(), someHost()); err == nil || !strings.Contains(err.Error(), `holds "thesis.tex"`) {
		t.Errorf("over other files: %v", err)
	}
	bad := someStudy()
	bad.Treatments = nil
	if _, err := Create(filepath.Join(other, "R"), bad, someHost()); err == nil {
		t.Error("a study without treatments was kept")
	}
	// A Create that was killed before its end left no study.json; the next one succeeds.
	half := t.TempDir()
	for name, text := range map[string]string{lockFile: "4711\n", hostFile: "torn", trialsFile: "torn", "123.part": "torn"} {
		if err := os.WriteFile(filepath.Join(half, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Create(half, someStudy(), someHost())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Trial(someTrial(0)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if all, err := readTrials(half); err != nil || len(all) != 1 {
		t.Errorf("%d trials, %v", len(all), err)
	}
}

// reference decodes trials.jsonl in the plainest way.
func reference(data []byte) ([]Trial, bool) {
	var all []Trial
	lines := strings.Split(string(data), "\n")
	for _, line := range lines[:len(lines)-1] {
		var t Trial
		if json.Unmarshal([]byte(line), &t) != nil || t.Round < 0 || t.Index < 0 || t.Treatment != "bm" && t.Treatment != "cn" || t.measurable() != nil {
			return all, false
		}
		all = append(all, t)
	}
	return all, true
}

// A number that nothing can have is damage: it would make infinite what is calculated with it.
func TestMeasurable(t *testing.T) {
	for v, want := range map[float64]bool{0: true, 1: true, -2.5: true, 1e70: true, -1e70: true, 1e-70: true, 1e71: false, -1e308: false, 1e-71: false, 5e-324: false} {
		for name, trial := range map[string]Trial{
			"value": {Value: v}, "elapsed_s": {ElapsedS: v}, "host_s": {HostS: v}, `figure "p99"`: {Figures: map[string]float64{"p99": v}},
		} {
			if err := trial.measurable(); (err == nil) != want || err != nil && !strings.HasPrefix(err.Error(), "its "+name+" is ") {
				t.Errorf("%s %g: %v, want it accepted: %t", name, v, err, want)
			}
		}
	}
}

// FuzzTrials: whatever bytes a folder's trials are, the reader gives what encoding/json gives, line by line, up to the
// first line that encoding/json refuses.
func FuzzTrials(f *testing.F) {
	for i := range 6 {
		line, err := json.Marshal(someTrial(i))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
		f.Add(line)
	}
	f.Add([]byte("{}\n\n"))
	f.Add([]byte(`{"probes":` + "\n"))
	f.Add([]byte(`{"probes":}` + "\n" + `{"probes":{"looked":["}"]}}` + "\n"))
	f.Add([]byte(`{"treatment":"bm","round":1e0,"Value":1.5E+3,"value":-0.0,"value":2}` + "\n"))
	f.Add([]byte(`{"treatment":"\u0062m","start":"2026-11-21T07:00:00+01:00","warnings":[],"command":null,"exit":-0}` + "\n"))
	folder := &Folder{Study: someStudy()}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, ok := reference(data)
		var got []Trial
		err := folder.trialsFrom(bytes.NewReader(data), trialsFile, func(t *Trial) error {
			got = append(got, *t)
			return nil
		})
		if (err == nil) != ok {
			t.Fatalf("error %v where encoding/json accepts: %v", err, ok)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %+v\nwant %+v", got, want)
		}
	})
}

// FuzzRead: whatever bytes study.json is, the reader answers, and what it accepts can be written and read again.
func FuzzRead(f *testing.F) {
	data, err := json.MarshalIndent(someStudy(), "", "  ")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"version":1,"treatments":[{"id":"a"}],"metrics":{"":{}}}`))
	f.Add([]byte(`{"version":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseStudy(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), ":") {
				t.Fatalf("the error does not go on from the file's name: %v", err)
			}
			return
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseStudy(again); err != nil {
			t.Fatalf("written again it is refused: %v", err)
		}
	})
}

func TestAdmits(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		empty: "", filepath.Join(dir, "new"): "", filepath.Join(dir, "new", "below"): "", dir: "which is not Tare's",
		file: "is, or is below, a file: name another", filepath.Join(file, "below"): "is, or is below, a file: name another",
		"/proc/none/R": "the results cannot be kept in /proc/none/R: cannot write in /proc: ",
	} {
		err := Admits(path, "quick")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("looking left %v, %v", left, err)
	}
}

// Only what ran on the CPU itself, under its own virtualization or none, stands for a platform's cost.
func TestRepresentative(t *testing.T) {
	t.Parallel()
	for accelerator, want := range map[string]bool{"": true, KVM: true, KVMEmulated: false, TCG: false} {
		if got := (Treatment{Platform: VM, Accelerator: accelerator}).Representative(); got != want {
			t.Errorf("representative under %q: %v, want %v", accelerator, got, want)
		}
	}
}

// A study of emulated VMs only is whole after its few rounds.
func TestLeastRounds(t *testing.T) {
	t.Parallel()
	real, emulated := Treatment{Platform: CN}, Treatment{Platform: VM, Accelerator: TCG}
	for _, c := range []struct {
		of   []Treatment
		want int
	}{{nil, 5}, {[]Treatment{real}, 5}, {[]Treatment{emulated}, 1}, {[]Treatment{real, emulated}, 5}, {[]Treatment{{Platform: CN, Rounds: 3}}, 3}} {
		s := Study{Design: Design{Floor: 5, Cap: 20, Emulated: 1}, Treatments: c.of}
		if got := s.Least(); got != c.want {
			t.Errorf("%v: at least %d rounds, want %d", c.of, got, c.want)
		}
	}
}
