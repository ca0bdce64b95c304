package notebooktest

import (
	"slices"

	"tare/notebook"
	"tare/notebook/kinds/memory"
)

// kept is what guests of a treatment take in Weighed: each MiB of its own and so many that all of them share, the same merged, the parts of its
// own that are files, and its processes' shares.
type kept struct {
	own, shared, merged, sharedMerged, files float64
	processes                                []string
	engine, ruler                            float64
	duplicates                               notebook.MemoryDuplicates
}

// Weighed is a study that weighs guests at 1, 2, 4 and 8, with and without KSM, whose true sizes are known: among n guests each takes a + b/n MiB.
// Bare metal takes 0.3 + 0.1/n, containers 9 + 7/n and 10 + 8/n, VMs 140 + 95/n, and merged 90 + 97/n.
func Weighed() *Folder {
	f := New(8)
	f.Study.Name, f.Study.Kind, f.Study.Config = "footprint", memory.Name, &memory.Config{Guests: []int{1, 2, 4, 8}, KSM: notebook.KSMPaper}
	f.Study.Design.Trials = 1
	mib := func(v float64) int64 { return int64(v * notebook.MiB) }
	alike := func(aa, ff, af float64) notebook.MemoryAlike {
		return notebook.MemoryAlike{AnonAnon: mib(aa), FileFile: mib(ff), AnonFile: mib(af)}
	}
	of := map[string]kept{
		"idle bm large":    {own: 0.3, shared: 0.1, merged: 0.3, sharedMerged: 0.1, files: 0.1, processes: []string{"sleep"}},
		"idle bm aa large": {own: 0.3, shared: 0.1, merged: 0.3, sharedMerged: 0.1, files: 0.1, processes: []string{"sleep"}},
		"idle cn docker vanilla large": {own: 9, shared: 7, merged: 9, sharedMerged: 7, files: 4, engine: 1.07, ruler: 0.4,
			processes:  []string{"shim", "bash", "bash", "bash", "bash", "bash", "rsyslogd"},
			duplicates: notebook.MemoryDuplicates{Within: alike(0.5, 0, 0.125), Host: alike(1, 0.5, 0.25), Guests: alike(4, 0, 0.5)}},
		"idle cn docker pinned large": {own: 10, shared: 8, merged: 10, sharedMerged: 8, files: 4, engine: 1.07, ruler: 0.4,
			processes:  []string{"shim", "bash"},
			duplicates: notebook.MemoryDuplicates{Within: alike(0.5, 0, 0.125), Host: alike(1, 0.5, 0.25), Guests: alike(4, 0, 0.5)}},
		"idle vm qemu kvm pinned large": {own: 140, shared: 95, merged: 90, sharedMerged: 97, files: 5, processes: []string{"qemu-system-x86"},
			duplicates: notebook.MemoryDuplicates{Within: alike(28, 0.5, 0.5), Host: alike(18, 2, 12), Guests: alike(48, 8, 3)}},
	}
	most := slices.Max(Config[memory.Config](f.Study, memory.Name).Guests)
	for _, words := range []string{"idle bm large", "idle bm aa large", "idle cn docker vanilla large", "idle cn docker pinned large", "idle vm qemu kvm pinned large"} {
		f.Add(words, of[words].own+of[words].shared/float64(most))
	}
	f.Study.Metrics["idle"], f.Study.Also = memory.PSS, map[string][]notebook.Metric{"idle": {memory.Merged, memory.Alone, memory.Added, memory.Asymptote}}
	f.Trial = func(x *notebook.Trial) {
		k := of[x.Treatment]
		noise := x.Value / f.Mean[x.Treatment]
		x.Figures = map[string]float64{}
		set := func(m notebook.Metric, v float64) { x.Figures[m.Name] = v * noise }
		set(memory.Merged, k.merged+k.sharedMerged/float64(most))
		set(memory.Alone, k.own+k.shared)
		set(memory.Added, k.own)
		set(memory.Asymptote, k.own)
		var seen memory.Seen
		for _, n := range Config[memory.Config](f.Study, memory.Name).Numbers() {
			g := float64(n)
			w := memory.Weight{Guests: n, MemoryWeight: notebook.MemoryWeight{PSS: mib(noise * (k.own*g + k.shared))}, Tables: mib(0.25 * g)}
			w.File = mib(noise * (k.files*g + k.shared))
			w.Anonymous, w.RSS = w.PSS-w.File, 2*w.PSS
			w.Engine.PSS, w.Ruler.PSS = mib(k.engine*g), mib(k.ruler*g)
			size := noise * (k.own + k.shared/g)
			w.Last = &notebook.MemoryGuest{
				MemoryWeight: notebook.MemoryWeight{PSS: mib(size), RSS: mib(2 * size)}, Duplicates: &k.duplicates,
				Kinds: []notebook.MemoryPart{{Name: "anonymous", PSS: mib(0.75 * size), RSS: mib(0.75 * size)}, {Name: "file", PSS: mib(0.25 * size), RSS: mib(size)}},
				Files: []notebook.MemoryPart{{Name: "/usr/lib/x86_64-linux-gnu/libc.so.6", PSS: mib(0.125 * size), RSS: mib(0.5 * size)}},
			}
			for i, name := range k.processes {
				share := size / float64(len(k.processes))
				w.Last.Processes = append(w.Last.Processes, notebook.MemoryProcess{PID: 100 + i, Name: name, MemoryWeight: notebook.MemoryWeight{PSS: mib(share), RSS: mib(2 * share)}})
			}
			merged := w
			merged.PSS, merged.KSM = mib(noise*(k.merged*g+k.sharedMerged)), &notebook.KSM{PagesToScan: 500, SleepMS: 10, CPUS: 2}
			seen.Weights = append(seen.Weights, w, merged)
		}
		x.Seen = seen
	}
	return f
}

// WeighedInside is Weighed, merged, with what only the last guest has: of VMs the paper's Figure 6.4 and its section 6.6, of which 23 MiB are
// the emulator's, 55 its files', 6 its processes', 5 its kernel's and 2 nobody's; 26 are duplicates and 2 idle. Containers have half of their own in files.
func WeighedInside() *Folder {
	f := Weighed()
	mib := func(v float64) int64 { return int64(v * notebook.MiB) }
	Config[memory.Config](f.Study, memory.Name).Frames = true
	Config[memory.Config](f.Study, memory.Name).Published = map[string][]float64{
		memory.Own.Name: {91}, memory.Emulator.Name: {23}, memory.GuestFile.Name: {55}, memory.Left.Name: {26}, memory.Best.Name: {58},
		memory.Within.Name: {28, 0.5, 0.5, 29},
	}
	weigh := f.Trial
	part := func(name string, guest, rss, own, alike, idle float64) notebook.MemoryFrames {
		return notebook.MemoryFrames{Name: name, Guest: mib(guest), RSS: mib(rss), PSS: mib(rss), Own: mib(own), Alike: mib(alike), Idle: mib(idle)}
	}
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		for _, w := range Seen[memory.Seen](x).Weights {
			g := w.Last
			for j := range g.Kinds {
				g.Kinds[j].Own = g.PSS / 4
			}
			g.Own = g.PSS / 2
			if x.Treatment != "idle vm qemu kvm pinned large" {
				continue
			}
			g.Own = mib(91)
			g.RAM = &notebook.MemoryRAM{
				Bytes: mib(1024), Emulator: part("emulator", 0, 40, 23, 4, 0), AtHand: mib(7), Changed: mib(0.25), Out: notebook.TextMessage("the files beyond the first 9, for which there was no time"),
				Kinds: []notebook.MemoryFrames{
					part(notebook.FramesFree, 848, 10, 2, 0, 0), part(notebook.FramesFile, 100, 90, 50, 20, 2), part(notebook.FramesShared, 10, 8, 5, 0, 0),
					part(notebook.FramesAnonymous, 20, 12, 6, 2, 0), part(notebook.FramesSlab, 16, 5, 3, 0, 0), part(notebook.FramesReserved, 30, 4, 2, 0, 0)},
				Files: []notebook.MemoryFrames{
					part("/usr/lib/x86_64-linux-gnu/libc.so.6", 2, 2, 1, 0.5, 0), part("/usr/lib/systemd/libsystemd-shared-257.so", 4, 4, 3, 1, 0)},
				Fewer: 3, Others: part("", 60, 50, 30, 10, 1), Unnamed: part("", 44, 42, 21, 8, 1),
				Duplicates: &notebook.MemoryDuplicates{Within: notebook.MemoryAlike{AnonAnon: mib(20), FileFile: mib(9)}},
			}
		}
	}
	return f
}
