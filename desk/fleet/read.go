package fleet

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Unread is a folder that does not count, and why.
type Unread struct {
	Dir string
	Err error // it cannot be read
	// Study is the folder's study, if most folders have another one. Against is the study's reference, if most folders have another one.
	Study, Against string
}

// reader makes digests of hosts, several at once.
type reader struct {
	opt      data.Options
	mu       sync.Mutex
	subjects map[data.Identity]*Subject
	omitted  map[omission]*Omission
}

// omission identifies an Omission.
type omission struct {
	of   data.Identity
	code string
}

// Read reads the results folders, a host at a time on each CPU, and combines them. It reads the folders of one host together. It leaves out folders
// that it cannot read, and folders of another study than most (Fleet.Unread). Memory grows with hosts and configurations, not with trials. If it can
// read no folder, the error is that of the first one.
func Read(dirs []string, opt data.Options) (*Fleet, error) {
	r := &reader{opt: opt, subjects: map[data.Identity]*Subject{}, omitted: map[omission]*Omission{}}
	hosts, errs := make([]*Host, len(dirs)), make([]error, len(dirs))
	each(len(dirs), func(i int) { hosts[i], errs[i] = r.digest(i, dirs[i:i+1]) })

	var unread []Unread
	for i, err := range errs {
		if err != nil {
			unread = append(unread, Unread{Dir: dirs[i], Err: err})
		}
	}
	read := slices.DeleteFunc(hosts, func(h *Host) bool { return h == nil })
	if len(read) == 0 {
		return nil, unread[0].Err
	}
	read, others := alike(read)
	unread = append(unread, others...)
	read, copies := r.together(read)
	f := from(read, opt.Margin)
	f.Unread = append(unread, copies...)
	f.Folders = len(dirs)
	return f, nil
}

// each calls do for 0 to n−1, on all CPUs.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
}

// alike are the hosts of the study that most folders are of, with the reference of most of these. The others are left out.
func alike(hosts []*Host) (most []*Host, others []Unread) {
	of := commonest(hosts, func(h *Host) study { return h.study })
	most = slices.DeleteFunc(slices.Clone(hosts), func(h *Host) bool {
		if h.study != of {
			others = append(others, Unread{Dir: h.Folders[0], Study: h.study.name})
		}
		return h.study != of
	})
	against := func(h *Host) string { return notebook.ReferenceText(h.reference) }
	reference := commonest(most, against)
	most = slices.DeleteFunc(most, func(h *Host) bool {
		if against(h) != reference {
			said := against(h)
			if said == "" {
				said = notebook.BM
			}
			others = append(others, Unread{Dir: h.Folders[0], Against: said})
		}
		return against(h) != reference
	})
	return most, others
}

// commonest is the value that most hosts have; of several, the first.
func commonest[V comparable](hosts []*Host, of func(*Host) V) (most V) {
	count := map[V]int{}
	for _, h := range hosts {
		count[of(h)]++
	}
	n := 0
	for _, h := range hosts {
		if v := of(h); count[v] > n {
			most, n = v, count[v]
		}
	}
	return most
}

// together reads the folders of one host together. A folder that is a copy of an earlier one does not count.
func (r *reader) together(hosts []*Host) (once []*Host, copies []Unread) {
	groups := map[string][]*Host{}
	for _, h := range hosts {
		if groups[h.ID] == nil {
			once = append(once, h)
		}
		groups[h.ID] = append(groups[h.ID], h)
	}
	unread := make([][]Unread, len(once))
	each(len(once), func(i int) {
		if group := groups[once[i].ID]; len(group) > 1 {
			once[i], unread[i] = r.grouped(group)
		}
	})
	return once, slices.Concat(unread...)
}

// grouped reads the folders of one host together, as far as they can be.
func (r *reader) grouped(group []*Host) (*Host, []Unread) {
	var every, nodes []string
	for _, h := range group {
		every, nodes = append(every, h.Folders...), append(nodes, h.Nodes...)
	}
	if all, err := r.digest(group[0].at, every); err == nil { // the usual case
		all.Nodes = distinct(nodes)
		return all, nil
	}
	all := group[0]
	var unread []Unread
	for _, h := range group[1:] {
		both, err := r.digest(group[0].at, slices.Concat(all.Folders, h.Folders))
		if err != nil {
			unread = append(unread, Unread{Dir: h.Folders[0], Err: err})
			continue
		}
		both.Nodes = distinct(slices.Concat(all.Nodes, h.Nodes))
		all = both
	}
	return all, unread
}

// distinct are the names, each once.
func distinct(names []string) []string {
	return data.Distinct(names, func(name string) string { return name })
}

// digest reads the folders of one host, and keeps little of them. at is the place of the first.
func (r *reader) digest(at int, dirs []string) (*Host, error) {
	s, err := data.Read(dirs, r.opt)
	if err != nil {
		return nil, err
	}
	first := s.Folders[0].Study
	h := &Host{
		Name: cmp.Or(notebook.NodeOf(dirs[0]), strings.Clone(s.Hosts[0].Hostname)), ID: strings.Clone(s.Hosts[0].ID), Folders: dirs, at: at, Virtual: s.Hosts[0].Virtualization != "",
		study: study{strings.Clone(first.Name), strings.Clone(first.Kind)}, margin: s.Margin(), reference: s.Baseline,
	}
	h.Nodes = []string{h.Name}
	h.facts(s)
	for _, f := range s.Folders {
		h.Unfinished = h.Unfinished || f.Rounds < f.Study.Least()
	}
	r.results(h, s)
	for _, l := range s.LeftOut {
		if !l.Treatment.AA {
			h.LeftOut = append(h.LeftOut, r.omission(at, l))
		}
	}
	return h, nil
}

// results adds what the host says of its configurations. Of several rows that are one configuration, the one with the most rounds counts.
func (r *reader) results(h *Host, s *data.Summary) {
	ids := make([]data.Identity, len(s.Rows))
	asked := make([]notebook.Treatment, len(s.Rows))
	kernels := map[data.Identity][]string{} // of VMs, by configuration
	for i, row := range s.Rows {
		asked[i] = row.Treatment
		for _, f := range s.Folders {
			t, chosen := f.Study.Asked(row.Treatment)
			if chosen != nil {
				asked[i] = t
				for _, length := range chosen {
					h.add(Length, row.Treatment.Workload, length)
				}
				break
			}
		}
		ids[i] = key(row, asked[i])
		if k := row.Treatment.Kernel; !slices.Contains(kernels[ids[i]], k) {
			kernels[ids[i]] = append(kernels[ids[i]], k)
		}
	}
	at := map[*Subject]int{}
	for i, row := range s.Rows {
		if row.Treatment.AA {
			continue
		}
		id := ids[i]
		if len(kernels[id]) > 1 {
			id.Variant.Kernel = row.Treatment.Kernel
		}
		for _, row := range append([]*data.Row{row}, row.Figures...) {
			id := id
			id.Metric, id.IsFigure = row.Metric, row.IsFigure
			res := resultOf(s, row)
			res.Of = r.subject(h.at, id, row, asked[i])
			if n, had := at[res.Of]; had {
				h.Twice = true
				if res.Rounds > h.Results[n].Rounds {
					h.Results[n] = res
				}
				continue
			}
			at[res.Of] = len(h.Results)
			h.Results = append(h.Results, res)
		}
	}
}

// resultOf is the result of a row.
func resultOf(s *data.Summary, row *data.Row) Result {
	nan := math.NaN()
	res := Result{
		Effect: stats.Effect{Value: nan, Variance: nan}, Cost: row.Cost(), Rounds: row.RatioRounds,
		Trials: row.Trials, Failed: row.Failed, Doubtful: row.Doubtful, Unreliable: row.Unreliable(),
	}
	if base := s.Base(row); base != nil && !row.IsBaseline() {
		x, y, _ := data.Paired(row, base)
		res.Effect = stats.Pairs{X: x, Y: y}.Effect()
		if row.Metric.MoreIsBetter() {
			res.Effect.Value = -res.Effect.Value
		}
	}
	return res
}

// subject is the configuration of that identity. Its row is from the first host that has it, whatever the order in which hosts are read.
func (r *reader) subject(at int, id data.Identity, row *data.Row, asked notebook.Treatment) *Subject {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.subjects[id]
	if s == nil {
		s = &Subject{at: math.MaxInt}
		r.subjects[id] = s
	}
	if row.Baseline == "" { // prefer a host that compares it with something
		at += math.MaxInt / 2
	}
	if at < s.at {
		s.Row, s.at = row.Bare(), at
		s.Row.Treatment.Params = asked.Params
	}
	return s
}

// omission is the treatment that was left out, with the reason.
func (r *reader) omission(at int, l data.LeftOut) *Omission {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := data.Row{Treatment: l.Treatment}
	id := omission{key(&row, l.Treatment), ""}
	if l.Reason != nil {
		id.code = l.Reason.Code
	}
	o := r.omitted[id]
	if o == nil {
		o = &Omission{at: math.MaxInt}
		r.omitted[id] = o
	}
	if at < o.at {
		o.Treatment, o.Reason, o.at = l.Treatment, l.Reason, at
	}
	return o
}
