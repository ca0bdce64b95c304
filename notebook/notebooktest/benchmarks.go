package notebooktest

import "tare/notebook"

// Benchmarks is a study of HPCC on bare metal, in Docker, in a VM of KVM and in an emulated one, with a figure of several metrics and its table. The VM loses what the paper
// "cloud-benchmarking" has it lose, the container nothing.
func Benchmarks() *Folder {
	f := New(2)
	f.Rounds, f.Noise = 8, 0.004
	f.Study.Name, f.Study.Title = "cloud-benchmarking", "HPCC and IOR, as in the paper"
	higher := func(name, unit string) notebook.Metric {
		return notebook.Metric{Name: name, Unit: unit, Better: notebook.Higher}
	}
	also := []notebook.Metric{
		higher("StarDGEMM", "Gflop/s"), higher("StarFFT", "Gflop/s"), higher("StarSTREAM copy", "GB/s"), higher("StarRandomAccess_LCG", "Gup/s"),
		{Name: "AvgPingPongLatency", Unit: "µs", Better: notebook.Lower}, // no axis of the figure but the last has it
	}
	f.Study.Metrics["hpcc"], f.Study.Also = higher("HPL", "Tflop/s"), map[string][]notebook.Metric{"hpcc": also}
	axis := func(name, metric string, vm float64) notebook.Axis {
		return notebook.Axis{Name: name, Workload: "hpcc", Metric: metric, Published: map[string]float64{notebook.VM: vm}}
	}
	copied := axis("STREAM copy", "StarSTREAM copy", -15.94)
	copied.Published[notebook.CN] = -0.16
	f.Study.Figures = []notebook.Figure{
		{Name: "Figure 5", Title: "HPCC result comparison", Radar: true, Axes: []notebook.Axis{
			axis("HPL", "", -2.33), axis("StarDGEMM", "StarDGEMM", -7.93), axis("StarFFT", "StarFFT", -7.25), copied, axis("RandomAccess", "StarRandomAccess_LCG", -14.55),
			{Name: "latency", Workload: "hpcc", Metric: "AvgPingPongLatency"},
		}},
		{Name: "Table I", Title: "StarSTREAM", Axes: []notebook.Axis{copied}},
	}
	slower := map[string]float64{} // by treatment: how much less it has of each metric than bare metal
	for words, less := range map[string]float64{"hpcc bm large": 1, "hpcc cn docker vanilla large": 1, "hpcc vm qemu kvm vanilla large": 0.9767, "hpcc vm qemu tcg vanilla large": 0.02} {
		slower[Treatment(words).ID] = less
	}
	for _, words := range []string{"hpcc bm large", "hpcc cn docker vanilla large", "hpcc vm qemu kvm vanilla large", "hpcc vm qemu tcg vanilla large"} {
		f.Add(words, 0.5*slower[Treatment(words).ID])
	}
	f.Trial = func(x *notebook.Trial) {
		t := Treatment(x.Treatment)
		noise := x.Value / f.Mean[x.Treatment]
		share := func(vm float64) float64 {
			switch {
			case t.Accelerator == notebook.TCG:
				return 0.02 * noise
			case t.Platform == notebook.VM:
				return vm * noise
			}
			return noise
		}
		x.Figures = map[string]float64{
			"StarDGEMM": 20 * share(0.9207), "StarFFT": 1.5 * share(0.9275), "StarSTREAM copy": 6.4 * share(0.8406), "StarRandomAccess_LCG": 0.03 * share(0.8545),
			"AvgPingPongLatency": 0.4 / share(0.5),
		}
	}
	return f
}
