package data

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/notebook"
	"tare/stats"
)

// Quantity is what is compared of treatments: metrics of their trials added up, divided by others where Per has some. The
// zero Quantity is the workload's own metric. A metric's name begins with its family, so that none hides another:
//
//	trial.NAME      of every trial, by the ruler: one of [TrialMetrics]
//	secondary.NAME  a secondary metric of the workload: secondary.p99
//	trace.NAME      a tracer's metric, with a role or "inside." before the name where it has one: trace.vcpu.migrations
//	account.NAME    seconds of the elapsed time that are attributed to a category (one of notebook.Walls)
//
// With a metric of the last two families all of the quantity is of the traced trials, else of the measured ones.
type Quantity struct{ Of, Per []string }

// Own says whether it is the workload's own metric.
func (q Quantity) Own() bool { return len(q.Of) == 0 }

// AllOf says whether all of it is of these secondary metrics of a kind of study.
func (q Quantity) AllOf(kind string, metrics []notebook.Metric) bool {
	return !q.Own() && !slices.ContainsFunc(slices.Concat(q.Of, q.Per), func(name string) bool {
		of, secondary := strings.CutPrefix(name, "secondary.")
		return !secondary || !slices.ContainsFunc(metrics, func(m notebook.Metric) bool { return m.Name == notebook.MetricKey(kind, of) })
	})
}

// Undercounted says whether the quantity is larger than what is recorded of it.
func (q Quantity) Undercounted() bool {
	return slices.ContainsFunc(q.Of, func(name string) bool {
		of, traced := strings.CutPrefix(name, "trace.")
		m, _ := tracerMetric(of)
		return traced && m.LowerBound
	})
}

// TrialMetrics are those that the ruler gives of every trial.
var TrialMetrics = []notebook.Metric{
	{Name: "elapsed_s", Unit: "s"},
	{Name: "cpu_s", Unit: "s"},          // CPU time of the work's processes; a service's is not known by trial
	{Name: "max_rss_mb", Unit: "MB"},    // of the work's largest process; neither is a service's
	{Name: "instance_cpu_s", Unit: "s"}, // elapsed time × the instance's cores
	{Name: "host_cpu_s", Unit: "s"},     // elapsed time × the host's online cores
	{Name: "host_cores", Unit: "1"},     // online
}

// Why a row has no value of a quantity.
type (
	// NotTraced: no trial was observed by the tracer; Option is what would do it.
	NotTraced struct{ Tracer, Option string }
	// TracerSilent: the tracer was to observe the trials, and has nothing of the metric.
	TracerSilent struct {
		Tracer, Metric string
		Why            Missing // empty: it does not say why
	}
	// HostsNetwork: the figures of networks are of the whole host, whose network the guest has.
	HostsNetwork struct{}
	// NoSuchMetric: the workload does not report the metric.
	NoSuchMetric struct{ Workload, Metric string }
	// UsageUnknown: what a service uses is not known by trial.
	UsageUnknown struct{ Workload string }
	// NeverTogether: no round has a value of each of its metrics, or those that it is divided by are zero.
	NeverTogether struct{}
)

func (NotTraced) Doubt()     {}
func (TracerSilent) Doubt()  {}
func (HostsNetwork) Doubt()  {}
func (NoSuchMetric) Doubt()  {}
func (UsageUnknown) Doubt()  {}
func (NeverTogether) Doubt() {}

// Check says what is wrong with the names of metrics.
func (q Quantity) Check() error {
	for _, name := range slices.Concat(q.Of, q.Per) {
		family, rest, _ := strings.Cut(name, ".")
		known := false
		switch family {
		case "trial":
			known = slices.ContainsFunc(TrialMetrics, func(m notebook.Metric) bool { return m.Name == rest })
		case "secondary":
			known = rest != ""
		case "trace":
			_, known = tracerMetric(rest)
		case "account":
			known = slices.Contains(notebook.Walls, rest)
		}
		if !known {
			return fmt.Errorf("%q: must be trial.NAME, secondary.NAME, trace.NAME or account.NAME, with the name of a known metric", name)
		}
	}
	return nil
}

// tracerMetric finds a tracer's metric by its name, with or without a role or a reason before it.
func tracerMetric(name string) (notebook.TracerMetric, bool) {
	base := name[strings.LastIndexByte(name, '.')+1:]
	i := slices.IndexFunc(notebook.TracerMetrics, func(m notebook.TracerMetric) bool { return m.Name == base })
	if i < 0 {
		return notebook.TracerMetric{}, false
	}
	return notebook.TracerMetrics[i], true
}

// traced says whether the quantity is of traced trials.
func (q Quantity) traced() bool {
	return slices.ContainsFunc(slices.Concat(q.Of, q.Per), func(name string) bool {
		return strings.HasPrefix(name, "trace.") || strings.HasPrefix(name, "account.")
	})
}

// Unit is the quantity's unit in a row; empty for a share or a count.
func (q Quantity) Unit(r *Row) string {
	if q.Own() {
		return r.Metric.Unit
	}
	of := unit(q.Of[0], r)
	if len(q.Per) == 0 {
		return of
	}
	switch per := unit(q.Per[0], r); {
	case per == of:
		return ""
	case per == "":
		return of
	default:
		return of + "/" + per
	}
}

func unit(name string, r *Row) (unit string) {
	family, rest, _ := strings.Cut(name, ".")
	switch family {
	case "trial":
		i := slices.IndexFunc(TrialMetrics, func(m notebook.Metric) bool { return m.Name == rest })
		unit = TrialMetrics[i].Unit
	case "secondary":
		i := slices.IndexFunc(r.Secondary, func(s Secondary) bool { return s.Metric.Name == rest })
		if i < 0 {
			i = slices.IndexFunc(r.Secondary, func(s Secondary) bool { return s.Metric.Name == notebook.MetricKey(r.Kind, rest) })
		}
		if i >= 0 {
			unit = r.Secondary[i].Metric.Unit
		}
	case "trace":
		m, _ := tracerMetric(rest)
		unit = m.Unit
	case "account":
		unit = "s"
	}
	if unit == "1" {
		return ""
	}
	return unit
}

// ValuesOf are the row's values of a quantity by block, as Values are those of its metric; none: why not.
func (r *Row) ValuesOf(q Quantity) ([]Value, Doubt) {
	if q.Own() {
		return r.Values, nil
	}
	traced := q.traced()
	var all []Value
	found := map[string]bool{}
	for i := range r.Cells {
		c := &r.Cells[i]
		n, complete := 0, true
		sum := func(names []string) (total float64) {
			for _, name := range names {
				s := r.metric(c, traced, name)
				if s.N == 0 {
					complete = false
					continue
				}
				found[name] = true
				total += s.Mean()
				n = s.N
			}
			return total
		}
		v := sum(q.Of)
		if len(q.Per) > 0 {
			v /= sum(q.Per)
		}
		if complete && stats.Finite(v) {
			all = append(all, Value{Block: c.Block, Mean: v, Trials: n})
		}
	}
	if all != nil {
		return all, nil
	}
	for _, name := range slices.Concat(q.Of, q.Per) {
		if !found[name] {
			return nil, r.without(name, traced)
		}
	}
	return nil, NeverTogether{}
}

// metric is one metric of a block's measured or traced trials.
func (r *Row) metric(c *Cell, traced bool, name string) stats.Sum {
	work := &c.Work
	if traced {
		if c.Traced == nil {
			return stats.Sum{}
		}
		work = &c.Traced.Work
	}
	times := func(s stats.Sum, f float64) stats.Sum { return stats.Sum{Of: s.Of * f, N: s.N} }
	family, rest, _ := strings.Cut(name, ".")
	switch family {
	case "secondary":
		if s, has := work.Secondary[rest]; has { // also if a workload's author gave the metric a name that one of a kind of study once had
			return s
		}
		return work.Secondary[notebook.MetricKey(r.Kind, rest)]
	case "trace":
		if ofNetwork(rest) && r.sharesNetwork() {
			return stats.Sum{}
		}
		return r.Trace.metric(c.Traced, rest)
	case "account":
		if c.Traced.Wall == nil {
			return stats.Sum{}
		}
		return c.Traced.Wall.Of(rest)
	}
	switch rest {
	case "elapsed_s":
		return work.Elapsed
	case "cpu_s":
		return work.CPU
	case "max_rss_mb":
		return times(work.RSS, 1e-6)
	case "instance_cpu_s":
		return times(work.Elapsed, r.Treatment.Instance.Cores)
	case "host_cpu_s":
		if r.HostCores > 0 {
			return times(work.Elapsed, float64(r.HostCores))
		}
	case "host_cores":
		if r.HostCores > 0 {
			return stats.Sum{Of: float64(r.HostCores * work.Elapsed.N), N: work.Elapsed.N}
		}
	}
	return stats.Sum{}
}

// loopback is the network device that leads nowhere.
const loopback = "lo"

// Kinds of devices, by the metrics that are counted of each.
var kinds = [][]string{
	{"reads", "read_bytes", "writes", "written_bytes"},
	{"received_packets", "received_bytes", "sent_packets", "sent_bytes"},
}

func ofNetwork(name string) bool { return slices.Contains(kinds[1], name) }

// sharesNetwork says whether the row's guests have the host's own network, whose figures are then of the whole host.
func (r *Row) sharesNetwork() bool {
	return r.Treatment.Platform == notebook.BM || r.Treatment.Network == notebook.NetHost
}

// metric is a tracer's metric in a block. What is counted by device is added up over the devices, the loopback's not; a
// device that did nothing of a kind may be without that figure, and then counts as 0 where other devices of its kind have it.
func (t *Trace) metric(c *TracedCell, name string) stats.Sum {
	if i := slices.Index(t.Names, name); i >= 0 {
		return c.Figure(i)
	}
	kind := slices.IndexFunc(kinds, func(k []string) bool { return slices.Contains(k, name) })
	if kind < 0 {
		return stats.Sum{}
	}
	var all stats.Sum
	for i, has := range t.Names {
		dot := max(strings.LastIndexByte(has, '.'), 0) // a device's name may have dots too
		device, figure := has[:dot], has[min(dot+1, len(has)):]
		if device == loopback || strings.HasPrefix(has, "inside.") || !slices.Contains(kinds[kind], figure) {
			continue
		}
		s := c.Figure(i)
		all.N = max(all.N, s.N)
		if figure == name {
			all.Of += s.Of
		}
	}
	return all
}

// without is why the row has nothing of a metric.
func (r *Row) without(name string, traced bool) Doubt {
	family, rest, _ := strings.Cut(name, ".")
	tracers := []string{notebook.TracerThreads, notebook.TracerScheduler} // that an account is made of
	if family == "trace" {
		m, _ := tracerMetric(rest)
		tracers = []string{m.Tracer}
	}
	option := "--explain=deep"
	if slices.Contains(notebook.DefaultTracers, tracers[0]) {
		option = "--explain"
	}
	asked := r.Trace != nil && slices.ContainsFunc(tracers, func(t string) bool { return r.Trace.Asked[t] })
	switch {
	case traced && r.Trace == nil, (family == "trace" || family == "account") && !asked:
		return NotTraced{tracers[0], option}
	case family == "trace" && ofNetwork(rest) && r.sharesNetwork():
		return HostsNetwork{}
	case family == "trace", family == "account":
		return TracerSilent{tracers[0], rest, r.Trace.Missing[tracers[0]]}
	case family == "secondary":
		return NoSuchMetric{r.Treatment.Workload, rest}
	}
	return UsageUnknown{r.Treatment.Workload}
}

// Work is what the ruler reports of a block's trials in addition to their metric. Of a service it knows neither CPU time nor memory.
type Work struct {
	Elapsed   stats.Sum            // seconds
	CPU       stats.Sum            // seconds, of all processes
	RSS       stats.Sum            // bytes, of the largest process
	Secondary map[string]stats.Sum // secondary metrics, by name
}

func (w *Work) add(n *notebook.Trial) {
	w.Elapsed.Add(n.ElapsedS)
	if cpu := n.Usage.UserS + n.Usage.SystemS; cpu > 0 && cpu <= mostValue {
		w.CPU.Add(cpu)
	}
	if n.Usage.MaxRSS > 0 {
		w.RSS.Add(float64(n.Usage.MaxRSS))
	}
	for name, v := range n.Figures {
		if w.Secondary == nil {
			w.Secondary = map[string]stats.Sum{}
		}
		s := w.Secondary[name]
		s.Add(v)
		w.Secondary[name] = s
	}
}

// Minus is one row of values less another, in the blocks that both have.
func Minus(x, y []Value) (all []Value) {
	of := map[Block]Value{}
	for _, v := range y {
		of[v.Block] = v
	}
	for _, v := range x {
		if w, both := of[v.Block]; both && !math.IsInf(v.Mean-w.Mean, 0) {
			all = append(all, Value{Block: v.Block, Mean: v.Mean - w.Mean, Trials: min(v.Trials, w.Trials)})
		}
	}
	return all
}

// Known is the row's mean of a metric, its own or a secondary one; not a number where it has none.
func (r *Row) Known(name string) stats.Estimate {
	if r.Metric.Name == name {
		return stats.Estimate{Value: r.Mean, Low: r.MeanLow, High: r.MeanHigh, N: r.Rounds}
	}
	for _, s := range r.Secondary {
		if s.Metric.Name == name {
			return stats.Estimate{Value: s.Mean, Low: s.Low, High: s.High, N: s.Rounds}
		}
	}
	return stats.Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
}
