package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// platforms are the platforms in words.
var platforms = map[string]string{
	notebook.BM:   "bare metal",
	notebook.CN:   "container",
	notebook.VM:   "VM",
	notebook.VMCN: "container in VM",
}

// Platform names a platform: "container in VM".
func Platform(p string) string { return cmp.Or(platforms[p], Plain(p)) }

// Name says a treatment in a sentence, without workload and instance type: "Docker with --cpuset-cpus", "a VM".
func Name(n data.Name) string {
	return InSentence(notebook.Treatment{Platform: n.Platform, Engine: n.Engine, Accelerator: n.Accelerator, Kernel: n.Kernel, Provisioning: n.Provisioning,
		Isolation: n.Isolation, Machine: n.Machine, AA: n.AA}, false)
}

// Choice names a treatment that can be chosen: "Docker with --cpuset-cpus at large".
func Choice(t notebook.Treatment, network bool) string {
	name := product(t, false) + withLimit(t) + " at " + Plain(t.Instance.Name)
	return join(", ", append([]string{name}, details(t, network)...)) + emulated(t)
}

// EnvironmentOf names a row's environment, with its network where rows of its workload differ in it: "Docker, CPU quota (--cpus)".
func EnvironmentOf(s *data.Summary, r *data.Row) string {
	return Environment(r.Treatment, s.Networks(r.Treatment.Workload))
}

// Label names a row's treatment with its instance type, and with its network and its host's CPUs where
// rows of its workload differ in them: "Docker, CPU quota (--cpus), 1/1GB".
func Label(s *data.Summary, r *data.Row) string {
	name := EnvironmentOf(s, r) + ", " + r.Treatment.Instance.Name
	return Plain(join(" ", []string{name, Online(s, r)}))
}

// subjectOf names the same to begin a sentence: "Docker with --cpus at 1/1GB". The sentence says what was emulated.
func subjectOf(s *data.Summary, r *data.Row) string {
	t := r.Treatment
	t.Accelerator = ""
	return Plain(join(" ", []string{Choice(t, s.Networks(t.Workload)), Online(s, r)}))
}

// Work names a treatment's workload with its parameters and those factors that are written like them: "hashing (megabytes=64, rate=8)".
func Work(t notebook.Treatment) string {
	assigned := t.Assigned()
	if len(assigned) == 0 {
		return Plain(t.Workload)
	}
	return Plain(t.Workload + " (" + notebook.Assignments(assigned, ", ") + ")")
}

// AllWorkloads stands for the workload of a figure that shows several.
const AllWorkloads = "all workloads"

// Among names a row's work among that of other rows: its workload, and the parameters in which it differs from those with the same workload.
func Among(r *data.Row, rows []*data.Row) string {
	own := r.Treatment.Assigned()
	differs := map[string]string{}
	for _, o := range rows {
		if o.Treatment.Workload != r.Treatment.Workload {
			continue
		}
		for name, value := range o.Treatment.Assigned() {
			if has := own[name]; has != "" && value != has {
				differs[name] = has
			}
		}
	}
	if len(differs) == 0 {
		return Plain(r.Treatment.Workload)
	}
	return Plain(r.Treatment.Workload + " (" + notebook.Assignments(differs, ", ") + ")")
}

// Place names what a row's table is of: "ffmpeg (segments=1) on bench".
func Place(r *data.Row) string {
	return Work(r.Treatment) + " on " + Plain(r.Host)
}

// Where says where a row stands, as far as it says so itself: "ffmpeg (segments=1) at large on bench with 4 of 8 CPUs". Its
// host is named where there are several.
func Where(s *data.Summary, r *data.Row) string {
	w := Work(r.Treatment)
	if r.Treatment.Instance.Name != "" {
		w += " at " + r.Treatment.Instance.Name
	}
	on := Online(s, r)
	switch {
	case len(s.Hosts) > 1 && r.Host != "":
		w += " on " + r.Host
	case on != "":
		w += " on the host"
	}
	return Plain(w + " " + on)
}

// Table says what a table of rows is of: where they stand, how many guests were weighed, and their image where other rows of their work
// have another.
func Table(s *data.Summary, rows []*data.Row) string {
	at := *rows[0]
	at.Treatment.Instance = notebook.Instance{}
	return Where(s, &at) + measuring(s, rows[0]) + Image(s, rows[0])
}

// Image names a row's image where other rows of its work have another, to follow what its table is of.
func Image(s *data.Summary, r *data.Row) string {
	if s.OtherImages(r) {
		return ", " + Plain(Digests(r.Image))
	}
	return ""
}

// Sized says what a treatment is, with its instance type and the size of its host where that was chosen for it:
// "Docker, CPU set (--cpuset-cpus), large".
func Sized(s *data.Summary, t notebook.Treatment) string {
	n := Environment(t, s.Networks(t.Workload)) + ", " + Plain(t.Instance.Name)
	if t.HostCores > 0 {
		n += ", host with " + Count(t.HostCores, "CPU")
	}
	return n
}

// Metric names a metric with its unit, and says where more of it is better: "execution time, s", "bandwidth, GB/s, higher is better".
func Metric(m notebook.Metric) string {
	return join(", ", []string{Plain(Caption(m.Name)), Plain(m.Unit), Direction(m)})
}

// Direction says which values of a metric are better. It is empty where lower is better, as readers assume for a time.
func Direction(m notebook.Metric) string {
	switch {
	case m.MoreIsBetter():
		return "higher is better"
	case !m.Directed():
		return "neither higher nor lower is better"
	}
	return ""
}

// CostOf defines the cost for a metric where higher is better. It goes with figures that show costs and not ratios of the metric.
func CostOf(m notebook.Metric) string {
	return "where a cost is the " + Plain(Caption(m.Name)) + " below over its own (" + Direction(m) + ")"
}

// Online says how many of its host's CPUs were online for a row. It is empty where readers need not know.
func Online(s *data.Summary, r *data.Row) string {
	of, say := s.Online(r.HostID, r.Treatment.Workload, r.HostCores)
	switch {
	case !say:
		return ""
	case r.HostCores == of:
		return fmt.Sprintf("with all %d CPUs", of)
	}
	return fmt.Sprintf("with %d of %d CPUs", r.HostCores, of)
}

// LeftOut names what was left out.
func LeftOut(s *data.Summary, l data.LeftOut) string {
	t := l.Treatment
	what := t.Workload + ", " + Environment(t, s.Networks(t.Workload)) + ", " + t.Instance.Name + " on " + l.Host
	if t.HostCores > 0 {
		what += " with " + Count(t.HostCores, "CPU")
	}
	return Plain(what)
}

// join puts parts together, without those that are empty.
func join(sep string, parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

// CHR writes a container-to-host core ratio; empty where it is not known.
func CHR(chr float64) string {
	if !stats.Finite(chr) || chr <= 0 {
		return ""
	}
	return strconv.FormatFloat(chr, 'g', 2, 64)
}

// Cores says how many of a host's CPUs an instance has: "2 of 112 CPUs".
func Cores(cores float64, host int) string { return fmt.Sprintf("%.3g of %d CPUs", cores, host) }

// P writes a probability of a test, a small one as a bound: "p = 0.012".
func P(p float64) string {
	switch {
	case math.IsNaN(p):
		return "p not known"
	case p < 0.001:
		return "p < 0.001"
	}
	return "p = " + Digits(p, 2)
}

// Digests says which image it is where several are told apart: "image 0123456789ab, input ba9876543210".
func Digests(i notebook.Image) string {
	short := func(digest string) string {
		d := strings.TrimPrefix(digest, "sha256:")
		return d[:min(len(d), 12)]
	}
	w := "image " + short(i.Digest)
	if i.Input != "" {
		w += ", input " + short(i.Input)
	}
	return w
}

// Omissions are what was left out, by reason. Folders of the first format have the sentence of what later ones have as a message.
func Omissions(s *data.Summary) [][]data.LeftOut {
	return data.Together(s.LeftOut, func(a, b data.LeftOut) bool { return Message(a.Reason) == Message(b.Reason) })
}
