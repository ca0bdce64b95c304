package notebooktest

import "tare/notebook"

// Stream is a folder of a benchmark that prints several figures of a machine's memory: the bandwidth of one operation in GB/s, by which its
// platforms are ranked and of which more is better, that of another, a latency, and a count of which nobody says which values are better. A pinned
// container loses nothing of them, a vanilla one 16 %, and a VM 5 % of the first bandwidth, of which the latency is one over, and 20 % of the second.
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
