package notebooktest

import (
	"fmt"

	"tare/notebook"
)

// Ratios are true ratios to bare metal.
type Ratios struct{ Vanilla, Pinned float64 }

// OneSize is the folder that the study `chr` leaves on a host with so many CPUs: a container of 16 cores, vanilla and pinned, next to bare metal of
// as many cores. The host's name says how many CPUs it has. Hosts of this kind have the same CPU model. A host with more than 16 CPUs cannot take
// CPUs offline.
func OneSize(cpus int, costs Ratios) *Folder {
	f := New(cpus)
	f.Host.ID, f.Host.Hostname, f.Host.CPUModel = fmt.Sprintf("%012d", cpus), fmt.Sprintf("host-%d", cpus), "Intel(R) Xeon(R) CPU E5-4628L v4 @ 1.80GHz"
	f.Host.OS, f.Host.Memory = "Debian GNU/Linux 13 (trixie)", int64(cpus)*8<<30
	f.Study.Name, f.Study.Title = "chr", "One container size on hosts of different core counts"
	f.Study.Figures = []notebook.Figure{{Name: "Figure 7", Title: "One container size by the host's number of cores", Workload: "ffmpeg", By: notebook.FactorHostCores.Name}}
	f.Study.Claims = []string{"pinning"}
	f.Study.Design = notebook.Design{Floor: 8, Cap: 20, Precision: 0.02, Trials: 1, Warmups: 1, TimeoutS: 1800}
	f.Rounds, f.Seed = 20, uint64(cpus)
	f.Guest = func(g *notebook.Guest) { g.ID = f.Host.Hostname + " " + g.ID }
	const size, time = "segments=1 width=1920 4xlarge", 135.0 / 16
	add := func(words string, hostCores int, mean float64) notebook.Treatment {
		t := Treatment(words)
		t.OthersOffline, t.MemoryWithheld, t.HostCores = t.Platform == notebook.BM, t.Platform == notebook.BM, hostCores
		if hostCores > 0 {
			t.ID = fmt.Sprintf("%s on %d CPUs", t.ID, hostCores)
		}
		if mean > 0 {
			f.AddTreatment(t, mean)
		}
		return t
	}
	of := []struct {
		words string
		ratio float64
	}{{"bm ", 1}, {"bm aa ", 1}, {"cn docker vanilla ", costs.Vanilla}, {"cn docker pinned ", costs.Pinned}}
	for _, o := range of {
		add(o.words+size, 0, time*o.ratio)
	}
	for _, n := range []int{16, 32, 64} {
		reason := notebook.Say("host-has-fewer-cpus", "cpus", n, "has", cpus)
		switch {
		case n == cpus: // that is all of its CPUs
			continue
		case n < cpus:
			reason = notebook.TextMessage("this host cannot take CPUs offline")
		}
		for _, o := range of {
			f.Study.LeftOut = append(f.Study.LeftOut, notebook.LeftOut{Treatment: add(o.words+size, n, 0), Reason: reason})
		}
	}
	return f
}
