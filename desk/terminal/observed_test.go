package terminal_test

import (
	"bytes"
	"testing"
	"time"

	"tare/desk/observed"
	"tare/desk/terminal"
	"tare/internal/golden"
	"tare/notebook"
)

// slicesOf are twenty parts of three seconds with these shares, which differ a little from part to part.
func slicesOf(shares map[string]float64) (all []notebook.ObservedSlice) {
	for i := range 20 {
		wall := map[string]float64{}
		rest, differ := 3.0, 1+0.1*float64(i%5-2)
		for key, share := range shares {
			wall[key] = 3 * share * differ
			rest -= wall[key]
		}
		wall[notebook.WallSleep] += rest
		all = append(all, notebook.ObservedSlice{Seconds: 3, Wall: wall})
	}
	return all
}

// times are predicted times with intervals.
func times(mean, p99 float64) notebook.ObservedTimes {
	of := func(s float64) notebook.ObservedTime {
		return notebook.ObservedTime{Seconds: s, Low: 0.93 * s, High: 1.06 * s}
	}
	return notebook.ObservedTimes{Mean: of(mean), P99: of(p99), ThrottledS: 1.25, QueuedS: 3.5}
}

func replayed(changes []notebook.ObservedChange) *notebook.ObservedReplay {
	return &notebook.ObservedReplay{Of: notebook.RequestsServed, N: 1234, Seconds: 60, Seen: times(0.0701, 0.0895), Checked: times(0.0692, 0.088), Changes: changes}
}

// What people read of a target that is held back, in each way, and of one that is idle.
func TestObservation(t *testing.T) {
	const mib = 1 << 20
	base := func() *notebook.Observation {
		return &notebook.Observation{
			Format: notebook.ObservationFormat, At: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC), Seconds: 60, Tier: notebook.TierEvents,
			Target: notebook.ObservedTarget{Name: "web\x1b[2J", Kind: notebook.TargetContainer, Processes: 2, Threads: 9, CPUs: "0-1", HostCPUs: 2, Cgroup: "/sys/fs/cgroup/docker/0a"},
			Slices: slicesOf(map[string]float64{notebook.WallUser: 0.03, notebook.WallSystem: 0.01}), Figures: map[string]float64{},
			Platform: notebook.ObservedPlatform{Root: "overlay", Seccomp: 1, HugePages: "madvise", LogDriver: "json-file", Network: "bridge", PortProxy: []string{"8080"}},
			Cost:     &notebook.ObservedCost{Seconds: 0.012, Runs: 60000, Of: 3, OfRunning: 1.5},
		}
	}
	for name, change := range map[string]func(o *notebook.Observation){
		"observed-idle.txt": func(*notebook.Observation) {},
		"observed-throttled.txt": func(o *notebook.Observation) {
			o.Slices = slicesOf(map[string]float64{notebook.WallUser: 0.34, notebook.WallSystem: 0.02, notebook.WallThrottled: 0.25, notebook.WallCore: 0.004, notebook.WallStolen: 0.02})
			o.Quota = &notebook.ObservedQuota{Cgroup: "/sys/fs/cgroup/docker/0a", Cores: 1, PeriodS: 0.1, BurstS: 0.05, Periods: 600, Exhausted: 298, LimitedS: 30}
			o.Runtimes = []notebook.ObservedRuntime{
				{Process: "java", PID: 4711, Runtime: notebook.RuntimeJVM, CPUs: 1, By: notebook.RuntimeByQuota},
				{Process: "api", PID: 4712, Runtime: notebook.RuntimeGo, Version: "1.22.1", CPUs: 2, By: notebook.RuntimeByAffinity, Limit: 1, PeriodS: 0.1},
				{Process: "nginx", PID: 4713, Runtime: notebook.RuntimeNginx, CPUs: 4, By: notebook.RuntimeByCount, Limit: 1, PeriodS: 0.1},
			}
			o.Threads = []notebook.ObservedThreads{
				{Process: "java", Thread: "worker-*", Threads: 4, Wall: map[string]float64{notebook.WallUser: 30.5, notebook.WallThrottled: 55, notebook.WallCore: 1.2}},
				{Process: "java", Thread: "java", Threads: 1, Wall: map[string]float64{notebook.WallUser: 5.5, notebook.WallThrottled: 2}},
				{Threads: 100, Wall: map[string]float64{notebook.WallUser: 0.1}},
			}
		},
		"observed-replayed.txt": func(o *notebook.Observation) {
			o.Slices = slicesOf(map[string]float64{notebook.WallUser: 0.34, notebook.WallThrottled: 0.25})
			o.Quota = &notebook.ObservedQuota{Cgroup: "/sys/fs/cgroup/cpu/docker/0a", Version: 1, Cores: 1, PeriodS: 0.1, Periods: 600, Exhausted: 298, LimitedS: 30}
			o.Requests = &notebook.Requests{N: 1234, Median: 0.061, Tail: 0.0895,
				Mean: map[string]float64{notebook.RequestQueued: 0.004, notebook.WallUser: 0.05, notebook.WallThrottled: 0.012, notebook.WallCore: 0.0021, notebook.WallNetwork: 0.002},
				P50:  map[string]float64{notebook.WallUser: 0.05, notebook.WallCore: 0.002, notebook.WallNetwork: 0.009},
				P99:  map[string]float64{notebook.RequestQueued: 0.0105, notebook.WallUser: 0.051, notebook.WallThrottled: 0.026, notebook.WallCore: 0.002}}
			o.Replay = replayed([]notebook.ObservedChange{
				{CPUs: 2, Times: times(0.055, 0.062)},
				{Limit: 2, PeriodS: 0.1, CPUs: 2, Times: times(0.056, 0.064)},
				{Limit: 1, PeriodS: 0.1, BurstS: 0.1, CPUs: 2, Times: times(0.057, 0.066)},
				{Limit: 1, PeriodS: 0.01, CPUs: 2, Times: times(0.08, 0.121)},
				{CPUs: 1, Times: times(0.12, 0.124)},
			})
		},
		"observed-no-gain.txt": func(o *notebook.Observation) {
			o.Quota = &notebook.ObservedQuota{Cgroup: "/sys/fs/cgroup/docker/0a", Version: 2, Cores: 1, PeriodS: 0.1, Periods: 600}
			o.Replay = replayed([]notebook.ObservedChange{{CPUs: 2, Times: times(0.07, 0.0891)}, {CPUs: 1, Times: times(0.12, 0.124)}})
			o.Replay.Of = notebook.RequestsWakes
			o.Requests = &notebook.Requests{N: 12, Median: 0.061, Tail: 0.0895, Mean: map[string]float64{notebook.WallUser: 0.05}, P50: map[string]float64{notebook.WallUser: 0.05}}
			o.Said = []*notebook.Message{notebook.Say("timeline-full", "seconds", 41.52)}
		},
		"observed-unreplayed.txt": func(o *notebook.Observation) {
			o.Said = []*notebook.Message{notebook.Say("replay-off", "mean", 0.0501, "replayed_mean", 0.0512, "p99", 0.0895, "replayed_p99", 0.121), notebook.Say("replay-too-few", "n", 12, "least", 50), notebook.Say("replay-of-vm"),
				notebook.Say("replay-closed-loop"), notebook.Say("requests-unseen", "why", "the kernel does not load its programs")}
		},
		"observed-starved.txt": func(o *notebook.Observation) {
			o.Slices = slicesOf(map[string]float64{notebook.WallUser: 0.18, notebook.WallCore: 0.72, notebook.WallStolen: 0.015})
			o.Ahead = []notebook.ObservedAhead{
				{Name: "db", Kind: notebook.AheadGroup, Seconds: 20, Count: 900}, {Name: "/system.slice/backup.service", Kind: notebook.AheadGroup, Seconds: 12, Count: 800},
				{Kind: notebook.AheadSelf, Seconds: 6, Count: 100}, {Name: "ksoftirqd/*", Kind: notebook.AheadKernel, Seconds: 2, Count: 30},
				{Name: "make 77", Kind: notebook.AheadProcess, Seconds: 1.5, Count: 20}, {Kind: notebook.AheadNobody, Seconds: 0.01, Count: 2000},
			}
			o.Ended = true
		},
		"observed-memory.txt": func(o *notebook.Observation) {
			o.Slices = slicesOf(map[string]float64{notebook.WallUser: 0.05, notebook.WallMemory: 0.6, notebook.WallBlock: 0.1})
			o.Memory = &notebook.ObservedMemory{Cgroup: "/sys/fs/cgroup/memory/docker/0a", Limit: 64 * mib, Used: 63 * mib, Files: 40 * mib, AtLimit: 4096, Refaults: 81234, Killed: 1}
			o.Platform.SharedCore = "8-9"
		},
		"observed-counters.txt": func(o *notebook.Observation) {
			o.Tier, o.Cost, o.Cut = notebook.TierCounters, nil, true
			for i := range o.Slices {
				wall := o.Slices[i].Wall
				wall[notebook.WallOther] = wall[notebook.WallSleep]
				delete(wall, notebook.WallSleep)
			}
			o.Said = []*notebook.Message{notebook.Say("observed-by-counters", "why", "no BPF programs are built for this kind of machine"), notebook.Say("disk-waits-uncounted")}
		},
	} {
		o := base()
		change(o)
		var text bytes.Buffer
		if err := terminal.Observation(&text, observed.From(o), terminal.Screen{Width: 100}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, text.Bytes())
	}
}
