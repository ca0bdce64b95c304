package export

import (
	"io"

	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

type part struct {
	Key     string         `json:"key"`
	Name    string         `json:"name"`
	Seconds stats.Estimate `json:"seconds"`
	Share   stats.Quotient `json:"share,omitzero"` // of the overhead; parts have it
}

// figure is one of the tracers' metrics. Baseline and More are null where the baseline has none.
type figure struct {
	Name     string          `json:"name"`
	Unit     string          `json:"unit"`
	Help     string          `json:"help"`
	Mean     stats.Estimate  `json:"mean"`  // of a trial
	Total    stats.Number    `json:"total"` // of all traced trials that have it
	Baseline *stats.Estimate `json:"baseline"`
	More     *stats.Estimate `json:"more"` // than the baseline
}

// requests describes the requests of an account.
type requests struct {
	Of    string `json:"of"` // notebook.Requests…
	N     int64  `json:"n"`  // in all traced trials
	ByAll int    `json:"by_all_trials"`
}

// slow says by how much slow requests took longer than median ones, and what that time went on.
type slow struct {
	Seconds stats.Estimate `json:"seconds"`
	Parts   []part         `json:"parts"`
}

// subjects are the words for what an account divides.
var subjects = map[explain.Subject]string{explain.OfElapsed: "elapsed", explain.OfMean: "mean", explain.OfP99: "p99"}

// tiers are the words for what an account is made of; a coarse one has none.
var tiers = map[int]string{notebook.TierCounters: "counters", notebook.TierEvents: "events"}

type account struct {
	subject
	Of          string                  `json:"of"`
	Requests    *requests               `json:"requests,omitempty"` // of an account of requests
	Emulated    bool                    `json:"emulated"`
	Tier        *string                 `json:"tier"`
	Coarse      bool                    `json:"coarse"`
	Doubtful    bool                    `json:"doubtful"`
	Baseline    *string                 `json:"baseline"`
	Against     *string                 `json:"against"`
	Rounds      int                     `json:"rounds"`
	Traced      int                     `json:"traced_trials"`
	Failed      int                     `json:"failed"`
	Elapsed     stats.Estimate          `json:"elapsed_s"`
	Times       stats.Quotient          `json:"times"`
	Overhead    stats.Estimate          `json:"gap_s"`
	Significant bool                    `json:"has_gap"`
	Parts       []part                  `json:"parts"`
	Fine        []part                  `json:"fine"`
	Spent       []part                  `json:"spent"`
	Slow        *slow                   `json:"slow,omitempty"` // of the 99th percentile
	TracerCost  stats.Quotient          `json:"tracer_cost"`
	Missing     map[string]string       `json:"missing"`
	Lost        int64                   `json:"lost_events"`
	PerRequest  *stats.Estimate         `json:"disk_operations_per_request,omitempty"` // a service has it where it was counted
	Figures     []figure                `json:"tracer_metrics"`
	Spread      []notebook.Distribution `json:"spread"`
	Inside      []notebook.Distribution `json:"inside"`
	Stacks      []notebook.Stack        `json:"stacks"`
	Sentence    string                  `json:"sentence"`
	Notes       []string                `json:"notes"`
}

// Accounts writes all that is known of accounts as `tare explain --format json` promises it. What is not known is null.
func Accounts(w io.Writer, as *explain.Accounts) error {
	of := func(list []*explain.Account) []account {
		all := []account{}
		for _, a := range list {
			all = append(all, accountOf(as, a))
		}
		return all
	}
	return write(w, struct {
		Accounts []account `json:"accounts"`
		Versus   []account `json:"versus"`
		Notes    []string  `json:"notes"`
	}{of(as.Accounts), of(as.Versus), list(words.Doubts(as.Doubts))})
}

func accountOf(as *explain.Accounts, a *explain.Account) account {
	j := account{
		subject: subjectOf(a.Row), Of: subjects[a.Of], Emulated: a.Emulated, Tier: word(tiers[a.Tier]), Coarse: a.Coarse, Doubtful: a.Doubtful, Against: word(words.Against(a)), Rounds: a.Rounds, Traced: a.Traced, Failed: a.Failed,
		Elapsed: a.Elapsed, Times: a.Times, Overhead: a.Overhead, Significant: a.Significant(), Parts: parts(a.Parts), Fine: parts(a.Fine),
		TracerCost: a.TracerCost, Missing: map[string]string{}, Lost: a.Lost, Figures: []figure{},
		Spread: list(a.Spread), Inside: list(a.Inside), Stacks: list(a.Stacks), Sentence: words.Account(as.Summary, a), Notes: list(words.Doubts(a.Doubts)),
	}
	j.Name = words.Label(as.Summary, a.Row)
	if a.Baseline != nil {
		j.Baseline = &a.Baseline.Treatment.ID
	}
	for tracer, why := range a.Missing {
		j.Missing[tracer] = words.Missing(why)
	}
	if of := a.Row.Trace.Requests; a.Of != explain.OfElapsed {
		j.Requests = &requests{of.Of, of.N, of.ByAll}
	}
	if a.DiskPerRequest.N > 0 {
		j.PerRequest = &a.DiskPerRequest
	}
	j.Spent = spent(a.Spent)
	if a.Of == explain.OfP99 {
		j.Slow = &slow{a.Slow, spent(a.SlowOn)}
	}
	for _, f := range a.Figures {
		g := figure{Name: f.Name, Unit: f.Unit, Help: words.TracerMetric(f.Of), Mean: f.Mean, Total: f.Total}
		if f.Before.N > 0 {
			g.Baseline, g.More = &f.Before, &f.More
		}
		j.Figures = append(j.Figures, g)
	}
	return j
}

func spent(list []explain.Spent) []part {
	all := []part{}
	for _, s := range list {
		all = append(all, part{Key: s.Key, Name: words.Part(s.Key), Seconds: s.Seconds})
	}
	return all
}

func parts(list []explain.Part) []part {
	all := []part{}
	for _, p := range list {
		all = append(all, part{p.Key, words.Part(p.Key), p.Seconds, p.Share})
	}
	return all
}
