package notebooktest

import (
	"fmt"
	"strconv"

	"tare/notebook"
	"tare/notebook/kinds/arrivals"
	"tare/notebook/kinds/starting"
)

// Raised is a study of containers that are started under load, at rates up to 16 a second: one engine that starts six a second at the most, and one that is never
// saturated; what the first is at is known by samples.
func Raised() *Folder {
	f := New(2)
	f.Rounds, f.Noise = 3, 0.02
	f.Study.Name, f.Study.Title = "bring-up", "Containers started under load"
	f.Study.Figures = []notebook.Figure{{Name: "Figure 5.1", Title: "Engine scaling", Workload: "hashing", By: notebook.FactorRate.Name}}
	f.Study.Kind, f.Study.Config = arrivals.Name, &arrivals.Config{
		ForS: 4, Least: 6, Most: 40, TimeoutS: 30, Profile: true, Published: []arrivals.Published{{Rate: 1, Mean: 0.68, P95: 0.78}, {Rate: 8, Mean: 2.65, P95: 4.59}},
	}
	for _, engine := range []string{"docker", "crun"} {
		for _, rate := range []int{1, 4, 8, 16} {
			f.Add(fmt.Sprintf("hashing rate=%d cn %s vanilla large", rate, engine), 1)
		}
	}
	f.Study.Metrics["hashing"], f.Study.Also = arrivals.StartMean, map[string][]notebook.Metric{"hashing": Config[arrivals.Config](f.Study, arrivals.Name).Also()}
	f.Trial = func(x *notebook.Trial) {
		t := Treatment(x.Treatment)
		rate, err := strconv.Atoi(notebook.FactorRate.Of(t))
		if err != nil {
			panic(err) // it is this file's own
		}
		most, least := 6.0, 0.25 // starts a second, seconds
		if t.Engine == "crun" {
			most, least = 100, 0.04
		}
		b := &arrivals.Bringup{Offered: float64(rate), Planned: Config[arrivals.Config](f.Study, arrivals.Name).Starts(rate), ClientS: 0.05, CreatedS: 1}
		end := 0.0
		for i := range b.Planned {
			at := float64(i) / float64(rate)
			end = max(end+1/most, at+least*x.Value)
			b.Starts = append(b.Starts, arrivals.Request{AtS: at, LateS: 0.0002, CallS: end - at, HelloS: end - at, AnswerS: end - at + 0.05})
		}
		b.OfS = end
		seen := arrivals.Seen{Bringup: b}
		if t.Engine == "docker" {
			seen.Profile = &arrivals.Profile{Hz: 499, OfS: end, Samples: 110, Names: []string{
				"dockerd", "runtime.main", "github.com/docker/docker/daemon.(*Daemon).containerStart", "runtime.mallocgc", "do_syscall_64", "copy_page_range", "path_mount", "tare", "runc",
			}, Stacks: arrivals.Fold([]arrivals.ProfileStack{
				{Role: arrivals.ProfileClient, User: []int{7, 1}, N: 10},
				{Role: arrivals.ProfileEngine, User: []int{0, 1, 2}, N: 20},
				{Role: arrivals.ProfileEngine, User: []int{0, 1, 2}, Kernel: []int{4, 5}, N: 35},
				{Role: arrivals.ProfileEngine, User: []int{0, 1, 2, 3}, N: 25},
				{Role: arrivals.ProfileEngine, User: []int{8, 1}, Kernel: []int{4, 6}, N: 20},
			})}
		}
		x.Seen, x.Figures = seen, b.Figures()
		for name, v := range seen.Profile.Figures() {
			x.Figures[name] = v
		}
		x.Value = x.Figures[arrivals.StartMean.Name]
	}
	return f
}

// Begun is a study of starts, cold and warm, of a container that is restored, and of a VM that cannot be.
func Begun() *Folder {
	f := New(2)
	f.Rounds, f.Noise = 12, 0.05
	f.Study.Name, f.Study.Title = "start-up", "How fast guests start"
	f.Study.Kind, f.Study.Config = starting.Name, &starting.Config{Caches: notebook.Caches, Restore: true, Published: []starting.Published{
		{Name: "KVM", Moment: notebook.MomentLogin, StartS: 10.342, RestoreS: 1.192}, {Name: "LXC", Moment: notebook.MomentReturned, StartS: 0.2, RestoreS: 0.099},
	}}
	f.Add("hashing cache=cold cn crun vanilla large", 0.3)
	f.Add("hashing cache=warm cn crun vanilla large", 0.1)
	f.Add("hashing cache=warm vm qemu kvm vanilla large", 2)
	first, also := Config[starting.Config](f.Study, starting.Name).Metrics()
	f.Study.Metrics["hashing"], f.Study.Also = first, map[string][]notebook.Metric{"hashing": also}
	f.Trial = func(x *notebook.Trial) {
		at := func(share float64) int64 { return int64(share * x.Value * 1e9) }
		s := &starting.Start{
			Moments: []notebook.Moment{
				{Name: notebook.MomentCreated, NS: at(0.3)}, {Name: notebook.MomentFirst, NS: at(0.4)}, {Name: notebook.MomentHello, NS: at(0.5)},
				{Name: notebook.MomentOrdered, NS: at(0.6)}, {Name: notebook.MomentAnswer, NS: at(1)},
			},
			Cached: notebook.Cached{Files: 3, Bytes: 1 << 20, Resident: 1 << 20},
		}
		if Treatment(x.Treatment).Platform == notebook.VM {
			s.NoSaving = notebook.TextMessage("this VM has a device that cannot be saved")
		} else {
			s.SavedNS, s.State, s.HowSaved = at(0.2), 8<<20, notebook.TextMessage("by CRIU")
			s.WentOn = notebook.TextMessage("a file in its memory had the random text that was written there before it was saved")
			s.Restored = []notebook.Moment{{Name: notebook.MomentRestored, NS: at(0.5)}, {Name: notebook.MomentAgain, NS: at(0.7)}}
		}
		x.Seen, x.Figures = starting.Seen{Startup: s}, s.Figures()
	}
	return f
}
