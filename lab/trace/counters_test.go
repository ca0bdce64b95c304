//go:build linux

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// recorded are a machine's files of testdata/counters: text after a line "-- NAME --" is the file of that name.
type recorded struct{ fstest.MapFS }

func (r recorded) put(name, text string) {
	mode := fs.FileMode(0o444)
	if strings.HasSuffix(name, "/ns/net") {
		mode, text = mode|fs.ModeSymlink, strings.TrimSpace(text)
	}
	r.MapFS[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(text), Mode: mode}
}

// in replaces a part of a file.
func (r recorded) in(t *testing.T, name, old, new string) {
	t.Helper()
	f := r.MapFS[strings.TrimPrefix(name, "/")]
	if f == nil || !strings.Contains(string(f.Data), old) {
		t.Fatalf("no %q in %s", old, name)
	}
	r.put(name, strings.Replace(string(f.Data), old, new, 1))
}

func record(t testing.TB, name string) recorded {
	t.Helper()
	b, err := os.ReadFile("testdata/counters/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r := recorded{fstest.MapFS{}}
	file, body := "", ""
	for line := range strings.Lines(string(b)) {
		if s, ok := strings.CutPrefix(line, "-- "); ok {
			file, body = strings.TrimSuffix(s, " --\n"), ""
		} else if body += line; file == "" {
			continue
		}
		r.put(file, body)
	}
	return r
}

// machine reads from recorded files as process 1, which is in the root of each hierarchy.
func (r recorded) machine(version int) files {
	return files{proc.Tree{FS: r}, func(pid int, controller string) (string, error) {
		dir := "/sys/fs/cgroup"
		if version == 1 {
			dir += "/" + controller
		}
		if pid != 1 {
			dir += "/guest"
		}
		return dir, nil
	}, 1}
}

var all = []string{notebook.TracerBandwidth, notebook.TracerCPU, notebook.TracerMemory, notebook.TracerIO}

// fromZero reads, and gives what was counted since all counters were 0.
func (f files) fromZero(as counted) (figures, fallback map[string]float64, missing reasons) {
	after := f.read(as)
	before := counters{missing: after.missing}
	for to, from := range map[*[]counts][]counts{&before.figures: after.figures, &before.fallback: after.fallback} {
		for _, c := range from {
			c.n = nil
			*to = append(*to, c)
		}
	}
	return after.since(before)
}

func (as counted) of(role string) counted {
	as.Threads = []engine.Thread{{ID: as.PID, Role: role}}
	return as
}

var (
	asV1 = counted{PID: 11511, Tracers: named(all), CPUs: []int{0, 1}}.of(notebook.RoleRuler)
	asV2 = counted{PID: 102, Tracers: named(all)}.of(notebook.RoleRuler)
)

// wantFigures compares figures, except their last digits.
func wantFigures(t testing.TB, what string, got, want map[string]float64) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-9*max(1, w) {
			t.Errorf("%s: %s %v, %v, want %v", what, name, g, ok, w)
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s %v, want none", what, name, g)
		}
	}
}

func TestRecordedV2(t *testing.T) {
	figures, fallback, missing := record(t, "v2.txt").machine(2).fromZero(asV2)
	wantFigures(t, "figures", figures, map[string]float64{
		"periods": 34, "throttled_periods": 30, "throttled_s": 1.533727,
		"user_s": 0.692795, "system_s": 0.853321, "interrupt_s": 0.25, "steal_s": 0,
		"minor_faults": 5413, "major_faults": 0, "reclaimed_pages": 0, "huge_faults": 0,
		"lo.received_packets": 50, "lo.received_bytes": 50 * 128, "lo.sent_packets": 50, "lo.sent_bytes": 50 * 128,
	})
	wantFigures(t, "fallback", fallback, map[string]float64{"vda.reads": 32, "vda.read_bytes": 32 * 4096, "vda.writes": 96, "vda.written_bytes": 96 * 4096})
	want := reasons{
		notebook.TracerCPU: {notebook.Say("times-in-steps-by-cpu", "figures", []string{"interrupt_s", "steal_s"}, "step", 10*time.Millisecond)},
		notebook.TracerIO:  {notebook.Say("network-of-whole-host")},
	}
	if !reflect.DeepEqual(missing, want) {
		t.Errorf("missing %q, want %q", missing, want)
	}
}

func TestRecordedV1(t *testing.T) {
	r := record(t, "v1.txt")
	figures, fallback, missing := r.machine(1).fromZero(asV1)
	for name := range figures {
		if strings.Contains(name, ".") && !strings.HasPrefix(name, "eth0.") {
			delete(figures, name)
		}
	}
	wantFigures(t, "figures", figures, map[string]float64{
		"periods": 15, "throttled_periods": 1, "throttled_s": 0.004781751,
		// The sum is cpuacct.usage; its parts are as those that the timer saw, which are more together.
		"user_s": 0.478753549 * 505548909 / 513548909, "system_s": 0.478753549 * 8000000 / 513548909,
		"interrupt_s": 88.95 + 58.39, "steal_s": 131.56 + 121.00,
		"minor_faults": 5255, "major_faults": 0, "reclaimed_pages": 3432128 + 3823190 + 32, "huge_faults": 120274,
		"eth0.received_bytes": 8928525738, "eth0.received_packets": 295739, "eth0.sent_bytes": 15278676, "eth0.sent_packets": 167974,
	})
	wantFigures(t, "fallback", fallback, map[string]float64{"vda.reads": 32, "vda.read_bytes": 32 * 4096, "vda.writes": 96, "vda.written_bytes": 96 * 4096})
	if want := "[of-whole-host figure=reclaimed_pages]"; fmt.Sprint(missing[notebook.TracerMemory]) != want || missing[notebook.TracerBandwidth] != nil {
		t.Errorf("missing %q, want %q of memory and nothing of bandwidth", missing, want)
	}

	// Where nothing has a limit, newer kernels count no blocks; the processes' bytes remain. The disk may be gone, too.
	for _, file := range []string{"io_serviced", "io_service_bytes"} {
		r.put("/sys/fs/cgroup/blkio/guest/blkio.throttle."+file+"_recursive", "Total 0\n")
	}
	r.in(t, "/proc/11511/io", "\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0", "\nread_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 1024")
	_, fallback, _ = r.machine(1).fromZero(asV1)
	wantFigures(t, "without a limit", fallback, map[string]float64{"read_bytes": 8192, "written_bytes": 3072})
}

// TestRecordedVariants changes one thing of a machine, and asks for what then is different.
func TestRecordedVariants(t *testing.T) {
	const stat = "11511 (a) b (c) S 1 1 0 0 -1 0 100 20 3 1 50 25 10 5 20 0 1 0 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 40 4 0 0 0 0 0 0 0\n"
	guest := map[string]string{"/proc/11511/stat": stat, "/proc/11511/task/11511/stat": stat}
	hasNoGroup := func(f *files) { f.group = func(int, string) (string, error) { return "", nil } }
	for _, c := range []struct {
		what    string
		as      counted
		files   map[string]string
		machine func(*files)
		want    map[string]float64 // NaN: none
		missing map[string]string  // a part of it
	}{
		{"no quota", asV1, map[string]string{"/sys/fs/cgroup/cpu/guest/cpu.cfs_quota_us": "-1\n"}, nil, map[string]float64{"periods": math.NaN()}, nil},
		{"a quota above, Tare in it", asV1, map[string]string{"/sys/fs/cgroup/cpu/guest/cpu.cfs_quota_us": "-1", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "7", "/sys/fs/cgroup/cpu/cpu.stat": "nr_periods 5\nnr_throttled 2\nthrottled_time 1000000000\n"}, nil,
			map[string]float64{"periods": 5, "throttled_periods": 2, "throttled_s": 1}, map[string]string{notebook.TracerBandwidth: "quota-shared-with-tare"}},
		{"two quotas", asV1, map[string]string{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "7"}, nil, map[string]float64{"periods": 15}, map[string]string{notebook.TracerBandwidth: "quota-above-uncounted cgroup=/sys/fs/cgroup/cpu"}},
		{"a broken quota", asV1, map[string]string{"/sys/fs/cgroup/cpu/guest/cpu.cfs_quota_us": "x"}, nil, map[string]float64{"periods": math.NaN()}, map[string]string{notebook.TracerBandwidth: "guest/cpu.cfs_quota_us: \"x\": must be a quota"}},
		{"a broken count", asV1, map[string]string{"/sys/fs/cgroup/cpu/guest/cpu.stat": "nr_periods many\n"}, nil, map[string]float64{"periods": math.NaN()}, map[string]string{notebook.TracerBandwidth: "guest/cpu.stat: line 1: \"nr_periods many\\n\": must be a name and a number"}},
		{"an empty file", asV1, map[string]string{"/sys/fs/cgroup/cpu/guest/cpu.stat": ""}, nil, map[string]float64{"periods": math.NaN()}, map[string]string{notebook.TracerBandwidth: "none of the wanted lines"}},
		{"bare metal", asV1, guest, hasNoGroup,
			map[string]float64{"user_s": 0.16, "system_s": 0.30, "guest_s": math.NaN(), "minor_faults": 120, "major_faults": 4, "periods": math.NaN()}, map[string]string{notebook.TracerCPU: "times-in-steps figures=[user_s system_s] step=0.01"}},
		{"a VM", asV1.of(notebook.RoleVCPU), guest, nil,
			map[string]float64{"user_s": 0.16, "system_s": 0.30, "guest_s": 0.44, "vcpu.user_s": 0.10, "vcpu.system_s": 0.25, "vcpu.guest_s": 0.40}, nil},
		{"no process", counted{Tracers: named(all)}, nil, nil, map[string]float64{"user_s": math.NaN(), "minor_faults": math.NaN(), "periods": math.NaN()},
			map[string]string{notebook.TracerCPU: "neither a cgroup of its own nor a process", notebook.TracerMemory: "neither a cgroup of its own nor a process", notebook.TracerIO: "no process of the guest is known"}},
		{"a process that has gone", counted{PID: 7, Tracers: named(all)}, nil, hasNoGroup, map[string]float64{"user_s": math.NaN(), "minor_faults": math.NaN()},
			map[string]string{notebook.TracerCPU: "neither a cgroup of its own nor a process", notebook.TracerIO: "proc/7/net/dev"}},
		{"a network of its own", asV1, map[string]string{"/proc/11511/ns/net": "net:[5]"}, nil, map[string]float64{"tare0keep.received_bytes": 0, "lo.received_packets": 6342723}, nil},
		{"a CPU that is not there", counted{PID: 11511, Tracers: named(all), CPUs: []int{2}}, nil, nil, map[string]float64{"interrupt_s": math.NaN()}, map[string]string{notebook.TracerCPU: "no line of cpu2"}},
		{"one CPU", counted{PID: 11511, Tracers: named(all), CPUs: []int{1}}, nil, nil, map[string]float64{"interrupt_s": 58.39, "steal_s": 121}, nil},
		{"no huge pages", asV1, map[string]string{"/proc/vmstat": "pgsteal_kswapd 5\n"}, nil, map[string]float64{"huge_faults": math.NaN(), "reclaimed_pages": 5}, map[string]string{notebook.TracerMemory: "not-counted figure=huge_faults"}},
		{"a cgroup that cannot be found", asV1, nil, func(f *files) {
			f.group = func(int, string) (string, error) { return "", errors.New("no mount shows it") }
		}, map[string]float64{"user_s": math.NaN()}, map[string]string{notebook.TracerCPU: "no mount shows it", notebook.TracerMemory: "no mount shows it", notebook.TracerIO: "no mount shows it", notebook.TracerBandwidth: "no mount shows it"}},
		{"nothing asked", counted{PID: 11511}, nil, nil, map[string]float64{"user_s": math.NaN(), "periods": math.NaN(), "huge_faults": math.NaN()}, nil},
	} {
		r := record(t, "v1.txt")
		for name, text := range c.files {
			r.put(name, text)
		}
		f := r.machine(1)
		if c.machine != nil {
			c.machine(&f)
		}
		figures, _, missing := f.fromZero(c.as)
		for name, want := range c.want {
			got, ok := figures[name]
			if math.IsNaN(want) != !ok || ok && math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s %v, %v, want %v; missing %q", c.what, name, got, ok, want, missing)
			}
		}
		for tracer, want := range c.missing {
			if !strings.Contains(fmt.Sprint(missing[tracer]), want) {
				t.Errorf("%s: missing of %s %q, want %q", c.what, tracer, missing[tracer], want)
			}
		}
		if _, ok := missing[notebook.TracerBandwidth]; ok && c.missing[notebook.TracerBandwidth] == "" {
			t.Errorf("%s: missing of bandwidth %q, want nothing", c.what, missing[notebook.TracerBandwidth])
		}
	}
}

func TestSince(t *testing.T) {
	r := record(t, "v1.txt")
	f := r.machine(1)
	before := f.read(asV1)
	r.in(t, "/sys/fs/cgroup/cpu/guest/cpu.stat", "nr_throttled 1\n", "nr_throttled 4\n")
	r.in(t, "/sys/fs/cgroup/cpuacct/guest/cpuacct.usage", "478753549", "1478753549")
	r.in(t, "/sys/fs/cgroup/cpuacct/guest/cpuacct.usage_user", "505548909", "805548909")
	r.in(t, "/sys/fs/cgroup/cpuacct/guest/cpuacct.usage_sys", "8000000", "108000000")
	r.in(t, "/proc/11511/net/dev", " tare1:     220       5", " tare1:     100       6")
	r.in(t, "/proc/11511/net/dev", "tare2keep:", "cni0:1.2: 11 1 0 0 0 0 0 0 22 2 0 0 0 0 0 0\ntare2keep:")
	figures, fallback, missing := f.read(asV1).since(before)
	wantFigures(t, "figures", figures, map[string]float64{
		"periods": 0, "throttled_periods": 3, "throttled_s": 0, "user_s": 0.75, "system_s": 0.25, "interrupt_s": 0, "steal_s": 0,
		"minor_faults": 0, "major_faults": 0, "reclaimed_pages": 0, "huge_faults": 0,
		"tare1.received_packets": 1, "cni0:1.2.received_bytes": 11, "cni0:1.2.received_packets": 1, "cni0:1.2.sent_bytes": 22, "cni0:1.2.sent_packets": 2,
	})
	wantFigures(t, "fallback", fallback, map[string]float64{"vda.reads": 0, "vda.read_bytes": 0, "vda.writes": 0, "vda.written_bytes": 0})
	if want := "counter-fell figure=tare1.received_bytes from=network net:[4026531833] is=100 was=220"; !strings.Contains(fmt.Sprint(missing[notebook.TracerIO]), want) {
		t.Errorf("missing %q, want %q", missing, want)
	}

	// A guest that is elsewhere now has not counted what the difference would be.
	f.group = func(pid int, controller string) (string, error) { return "/sys/fs/cgroup/" + controller, nil }
	figures, _, missing = f.read(asV1).since(before)
	for _, name := range []string{"user_s", "minor_faults", "periods"} {
		if v, ok := figures[name]; ok {
			t.Errorf("%s %v of a guest that was moved", name, v)
		}
	}
	for tracer, want := range map[string]string{
		notebook.TracerBandwidth: "counter-gone from=/sys/fs/cgroup/cpu/guest/cpu.stat",
		notebook.TracerCPU:       "counter-new from=the guest's processes",
		notebook.TracerMemory:    "guest/memory.stat",
	} {
		if !strings.Contains(fmt.Sprint(missing[tracer]), want) {
			t.Errorf("missing of %s %q, want %q", tracer, missing[tracer], want)
		}
	}
}

// FuzzCounters gives any text to every parser: each answers with numbers that can be added, or an error of one line.
func FuzzCounters(f *testing.F) {
	for _, name := range []string{"v1.txt", "v2.txt"} {
		for _, file := range record(f, name).MapFS {
			f.Add(string(file.Data))
		}
	}
	f.Add("8:0 rbytes=x\n8:16\n8:32 rios=1 cost.usage=?")
	f.Add("pgfault 9223372036854775807\npgfault 9223372036854775807")
	f.Fuzz(func(t *testing.T, text string) {
		fine := func(what string, err error, n ...uint64) {
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000) {
				t.Errorf("%s: %q", what, err)
			}
			for _, v := range n {
				if err == nil && v > math.MaxInt64 {
					t.Errorf("%s: %d", what, v)
				}
			}
		}
		put := func(device, name string, n uint64) error {
			if !isDevice(device) || strings.ContainsAny(device, "/.") {
				return fmt.Errorf("device %q", device)
			}
			fine(device+name, nil, n)
			return nil
		}
		for _, want := range []map[string]string{bandwidthV1, bandwidthV2, faultsBelow, faultsV2, reclaimed} {
			n, err := parseFlat(text, want, 1000)
			for name, v := range n {
				fine(name, err, v)
			}
		}
		for what, err := range map[string]error{"blkio": parseBlkio(text, [2]string{"reads", "writes"}, put), "io.stat": parseIOStat(text, put)} {
			fine(what, err)
			if err != nil && strings.HasPrefix(err.Error(), "device ") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
