package notebooktest

import "tare/notebook"

// Stream is a folder of a benchmark that prints several metrics of a machine's memory. The bandwidth of one operation in GB/s is the primary metric;
// higher is better. The others are the bandwidth of another operation, a latency, and a count without a better direction. A pinned container
// loses nothing, and a vanilla one 16 %. A VM loses 5 % of the first bandwidth and 20 % of the second. The latency is one over the first bandwidth.
func Stream() *Folder {
	f := New(4)
	f.Rounds, f.Noise, f.Study.Name = 10, 0.004, "stream"
	f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Trials: 2, TimeoutS: 60}
	f.Study.Metrics["stream"] = notebook.Metric{Name: "copy bandwidth", Unit: "GB/s", Better: notebook.Higher}
	f.Study.Also = map[string][]notebook.Metric{"stream": {
		{Name: "triad bandwidth", Unit: "GB/s", Better: notebook.Higher}, {Name: "latency", Unit: "us", Better: notebook.Lower}, {Name: "passes", Unit: "1"},
	}}
	const vm = "stream vm qemu kvm pinned 2/4GB"
	f.Add("stream bm 2/4GB", 20).Add("stream bm aa 2/4GB", 20)
	f.Add("stream cn docker vanilla 2/4GB", 20*0.84).Add("stream cn docker pinned 2/4GB", 20).Add(vm, 20*0.95)
	f.Trial = func(t *notebook.Trial) {
		triad := t.Value / 2
		if t.Treatment == vm {
			triad *= 0.80 / 0.95
		}
		t.ElapsedS, t.HostS = 5, 5
		t.Figures = map[string]float64{"triad bandwidth": triad, "latency": 2 / t.Value, "passes": 10}
	}
	return f
}
