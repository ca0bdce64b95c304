package claims

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// simulated is a folder of rounds of two workloads: a service, and processes. What the ruler, the load and the tracers say of
// a trial is made of its value, so that it varies as that does.
func simulated(t *testing.T, rounds int, noise float64, traced bool, change func(*notebook.Trial, notebook.Treatment)) *data.Summary {
	t.Helper()
	f := notebooktest.New(16)
	f.Rounds, f.Noise = rounds, noise
	f.Study.Design = notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
	f.Study.Also = map[string][]notebook.Metric{"web": {{Name: "p99", Unit: "s"}, {Name: "requests", Unit: "1"}}}
	if traced {
		f.Study.Explain = notebook.DeepTracers
	}
	f.Add("web bm large", 1).Add("web cn docker vanilla large", 2).Add("web cn docker pinned large", 1.2)
	f.Add("bm large", 4).Add("cn docker vanilla large", 5).Add("cn docker pinned large", 4.1)
	f.Add("bm xlarge", 2).Add("cn docker vanilla xlarge", 2.2).Add("cn docker pinned xlarge", 2.05)
	treatments := map[string]notebook.Treatment{}
	for _, tr := range f.Study.Treatments {
		treatments[tr.ID] = tr
	}
	f.Trial = func(x *notebook.Trial) {
		tr := treatments[x.Treatment]
		if tr.Workload == "web" {
			x.Figures = map[string]float64{"p99": 3 * x.Value, "requests": 1000}
		} else {
			x.Usage = notebook.Usage{UserS: 0.9 * x.ElapsedS * tr.Instance.Cores, SystemS: 0.1 * x.ElapsedS, MaxRSS: 50e6}
		}
		if x.Trace != nil {
			x.Trace.Figures = map[string]float64{"vda.reads": 1500, "vdb.reads": 500, "lo.received_packets": 9e6, "eth0.100.received_packets": 4000, "eth0.100.sent_bytes": 7, "migrations": 100 * x.Value, "run_s": x.ElapsedS}
			x.Trace.Wall = map[string]float64{notebook.WallUser: 0.7 * x.ElapsedS, notebook.WallBlock: 0.3 * x.ElapsedS}
		}
		if change != nil {
			change(x, tr)
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judgeOne judges one hypothesis of the file's language.
func judgeOne(t *testing.T, s *data.Summary, hypothesis string) Verdict {
	t.Helper()
	all, err := Parse("mine.yaml", []byte(oneClaim("      "+hypothesis)))
	if err != nil {
		t.Fatal(err)
	}
	return Judge(s, all)[0]
}

// Each form and each family of metrics holds, fails and stays undecided on folders where it should.
func TestMeasures(t *testing.T) {
	clear, noisy := simulated(t, 12, 0.003, true, nil), simulated(t, 3, 0.4, true, nil)
	for _, c := range []struct{ holds, fails string }{
		{"value: {of: {platform: bm, instance: large}, at_least: 3.9}", "value: {of: {platform: bm, instance: large}, at_least: 4.2}"},
		{"value: {of: {workload: web, platform: cn, provisioning: vanilla}, metric: secondary.p99, between: [5.5, 6.5]}",
			"value: {of: {workload: web, platform: cn, provisioning: vanilla}, metric: secondary.p99, at_most: 5}"},
		{"ratio: {of: {workload: web, platform: cn, provisioning: vanilla}, metric: secondary.p99, higher: 50%}",
			"ratio: {of: {workload: web, platform: cn, provisioning: vanilla}, metric: secondary.p99, lower: 2%}"},
		{"difference: {of: {platform: cn, provisioning: vanilla, instance: large}, between: [0.9, 1.1]}",
			"difference: {of: {platform: cn, provisioning: vanilla, instance: large}, at_most: -0.5}"},
		{"difference: {of: {platform: cn, provisioning: pinned, instance: large}, to: {provisioning: vanilla}, at_most: -0.5}",
			"difference: {of: {platform: cn, provisioning: pinned, instance: large}, to: {provisioning: vanilla}, at_least: 0.5}"},
		{"removed: {of: {platform: cn, provisioning: vanilla, instance: large}, to: {provisioning: pinned}, at_least: 0.5}",
			"removed: {of: {platform: cn, provisioning: vanilla, instance: large}, to: {provisioning: pinned}, at_most: 0.5}"},
		{"trend: {of: {platform: cn, provisioning: vanilla}, by: difference, over: instance, falls: 50%}",
			"trend: {of: {platform: cn, provisioning: vanilla}, by: difference, over: instance, rises: 2%}"},
		{"trend: {of: {platform: cn, provisioning: vanilla}, by: value, metric: trace.migrations, over: instance, falls: 50%}",
			"trend: {of: {platform: cn, provisioning: vanilla}, by: value, metric: trace.migrations, over: instance, rises: 2%}"},
		{"value: {of: {workload: web, platform: cn}, metric: trace.migrations, per: trial.elapsed_s, sizes: smallest, at_least: 50}",
			"value: {of: {workload: web, platform: cn}, metric: trace.migrations, per: trial.elapsed_s, sizes: smallest, at_least: 500}"},
		{"value: {of: {platform: cn}, metric: account.block, per: trial.elapsed_s, between: [0.25, 0.35]}",
			"value: {of: {platform: cn}, metric: account.block, per: trial.elapsed_s, at_least: 0.5}"},
		{"value: {of: {platform: cn}, metric: trial.cpu_s, per: trial.instance_cpu_s, at_least: 0.9}",
			"value: {of: {platform: cn}, metric: trial.cpu_s, per: trial.host_cpu_s, at_least: 0.9}"},
		{"gain: {of: {platform: cn, provisioning: vanilla, instance: large}, to: {provisioning: pinned}, than: {workload: web}, metric: trace.migrations, lower: 2%}",
			"gain: {of: {platform: cn, provisioning: vanilla, instance: large}, to: {provisioning: pinned}, than: {workload: web}, metric: trace.migrations, higher: 2%}"},
		{"ratio: {of: {workload: web, platform: cn, provisioning: vanilla}, to: {workload: ffmpeg}, metric: trace.migrations, lower: 2%}",
			"ratio: {of: {workload: web, platform: cn, provisioning: vanilla}, to: {workload: ffmpeg}, metric: trace.migrations, higher: 2%}"},
	} {
		for text, want := range map[string]Answer{c.holds: Holds, c.fails: DoesNotHold} {
			if v := judgeOne(t, clear, text); v.Answer != want {
				t.Errorf("%s: %s, want %s: %s", text, v.Answer, want, Why(v))
			}
		}
		// A claim about counts that do not vary is decided in any noise.
		v := judgeOne(t, noisy, c.holds)
		if v.Answer != NotDecided && !strings.Contains(c.holds, "per: trial") {
			t.Errorf("%s, in much noise: %s: %s", c.holds, v.Answer, Why(v))
		}
	}
	// What is counted by device is added up, without the loopback.
	for text, want := range map[string]string{
		"value: {of: {workload: web, platform: cn, provisioning: pinned}, metric: [trace.reads, trace.received_packets], per: secondary.requests, between: [5.9, 6.1]}": "reads + received packets per requests of cn docker pinned, web at large: 6.00 (",
		// None of them has sent anything, though the network was observed.
		"value: {of: {workload: web, platform: cn, provisioning: pinned}, metric: trace.sent_packets, at_most: 1}": "sent packets of cn docker pinned, web at large: 0 (",
		"value: {of: {platform: bm, instance: large}, metric: trial.max_rss_mb, between: [40, 60]}":                "max RSS of bm, ffmpeg at large: 50.0 MB (",
		"difference: {of: {platform: cn, provisioning: vanilla, instance: large}, at_least: 0.5}":                  "cn docker vanilla − bm, ffmpeg at large: 1.0",
	} {
		if v := judgeOne(t, clear, text); v.Answer != Holds || !strings.HasPrefix(Why(v), want) {
			t.Errorf("%s: %s: %s", text, v.Answer, Why(v))
		}
	}
}

// A verdict names what a folder lacks, and what would add it. Nothing else decides the claim in its place.
func TestMeasuresThatAreNotThere(t *testing.T) {
	untraced := simulated(t, 6, 0.01, false, nil)
	deaf := simulated(t, 6, 0.01, true, func(x *notebook.Trial, _ notebook.Treatment) {
		if x.Trace != nil {
			x.Trace.Figures, x.Trace.Wall, x.Trace.Missing = nil, nil, map[string]*notebook.Message{notebook.TracerScheduler: notebook.TextMessage("no BTF")}
		}
	})
	for _, c := range []struct {
		sum        *data.Summary
		text, want string
	}{
		{untraced, "value: {of: {platform: bm}, metric: trace.migrations, at_most: 1}", "no trial was observed by the tracer scheduler: run with --explain=deep"},
		{untraced, "value: {of: {platform: bm}, metric: trace.user_s, at_most: 1}", "no trial was observed by the tracer cpu: run with --explain"},
		{untraced, "value: {of: {platform: bm}, metric: account.block, at_most: 1}", "no trial was observed by the tracer threads: run with --explain"},
		{untraced, "value: {of: {platform: bm}, metric: trial.cpu_s, per: account.user, at_most: 1}", "no trial was observed by the tracer threads: run with --explain"},
		{deaf, "value: {of: {platform: bm}, metric: trace.migrations, at_most: 1}", "bm: the tracer scheduler has no migrations: no BTF"},
		{deaf, "value: {of: {platform: bm}, metric: trace.reads, at_most: 1}", "bm: the tracer io has no reads"},
		{untraced, "value: {of: {platform: bm}, metric: secondary.p99, at_most: 1}", "bm: ffmpeg does not report p99"},
		{untraced, "value: {of: {workload: web, platform: bm}, metric: trial.cpu_s, at_most: 1}", "bm: the CPU time and memory of web are not known for each run, because it is a service"},
		{deaf, "value: {of: {platform: bm}, metric: trace.sent_bytes, at_most: 1}", "bm: it uses the host's network, so network counts are of the whole host"},
		{untraced, "unrecorded: interrupts are not counted by guest", "Tare does not record it: interrupts are not counted by guest"},
	} {
		v := judgeOne(t, c.sum, c.text)
		if v.Answer != NotTestable || Why(v) != c.want || v.Tested {
			t.Errorf("%s: %s (tested %v): %s", c.text, v.Answer, v.Tested, Why(v))
		}
	}
}
