package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"

	"tare/desk/claims"
	"tare/desk/fleet"
	"tare/desk/words"
	"tare/stats"
)

// FleetSchema names the form of a FleetAnswer in JSON.
const FleetSchema = "tare.fleet/1"

// FleetAnswer is what `tare summary FLEET --format json` prints. A number that is not known is null. Shares are fractions: 0.05 is 5 %. Changes are of
// costs: above 0 is worse than the reference, whatever the metric.
type FleetAnswer struct {
	Schema         string               `json:"schema"`         // "tare.fleet/1"; a change that breaks readers gets another number
	Study          string               `json:"study"`          // that most folders hold; the others are left out
	Confidence     float64              `json:"confidence"`     // of every interval and bound: 0.95
	Margin         float64              `json:"margin"`         // smallest change that matters, a share
	Reference      string               `json:"reference"`      // environment to which changes are relative: bm, or what --against names
	Headline       []string             `json:"headline"`       // the finding, a sentence each, the most important one first
	Folders        int                  `json:"folders"`        // results folders that were found
	Configurations []FleetConfiguration `json:"configurations"` // in the order of the study
	Comparisons    int                  `json:"comparisons"`    // of classes of hosts, for which each p is corrected
	Classes        []FleetClass         `json:"classes"`        // that differ
	Outliers       []FleetOutlier       `json:"outliers"`       // hosts unlike the others, the most unlike first
	Hosts          []FleetHost          `json:"hosts"`          // that count, each once
	LeftOut        []FleetFolder        `json:"left_out"`       // folders that do not count
	NotMeasured    []FleetOmission      `json:"not_measured"`   // configurations that hosts left out
}

// FleetSubject names a configuration.
type FleetSubject struct {
	Treatment    string            `json:"treatment"`    // name of the configuration in the study of the first host that has it
	Name         string            `json:"name"`         // of the environment, for people: "Docker, CPU quota (--cpus)"
	Workload     string            `json:"workload"`     // name of the workload
	Params       map[string]string `json:"params"`       // parameters of the workload; "60 or more": each host chose its own
	Platform     string            `json:"platform"`     // bm, cn, vm or vmcn
	Engine       *string           `json:"engine"`       // container engine or VM monitor; null on bare metal
	Accelerator  *string           `json:"accelerator"`  // of a VM: kvm or tcg; else null
	Provisioning *string           `json:"provisioning"` // how CPUs are limited: vanilla (quota), pinned (set) or whole; null on bare metal
	Instance     string            `json:"instance"`     // name of the size: CPUs and memory
	Network      *string           `json:"network"`      // of a container, if the study names it; else null
	Isolation    *string           `json:"isolation"`    // topmost layer of the isolation ladder; null outside ladders
	Metric       string            `json:"metric"`       // what was measured
	Unit         string            `json:"unit"`         // of the metric; empty or 1: none
	Secondary    bool              `json:"secondary"`    // the metric is a secondary one of the workload
	Emulated     bool              `json:"emulated"`     // a VM without KVM: its times do not represent a VM's cost
}

// FleetConfiguration is a configuration over hosts.
type FleetConfiguration struct {
	FleetSubject
	HostsWith  int            `json:"hosts_with"`  // hosts whose cost counts
	Verdict    *stats.Verdict `json:"verdict"`     // on the mean over hosts, at the margin; null: no interval, or emulated
	Change     stats.Number   `json:"change"`      // geometric mean of the hosts' costs over the reference's, minus 1
	ChangeLow  stats.Number   `json:"change_low"`  // lower end of its two-sided interval
	ChangeHigh stats.Number   `json:"change_high"` // upper end of its two-sided interval
	AtLeast    stats.Number   `json:"bound_low"`   // one-sided bound: the change is at least this
	AtMost     stats.Number   `json:"bound_high"`  // one-sided bound: the change is at most this
	NextLow    stats.Number   `json:"next_low"`    // lower end of the interval of the next host's true change; null: fewer than three hosts
	NextHigh   stats.Number   `json:"next_high"`   // upper end of that interval
	Between    stats.Number   `json:"between"`     // standard deviation of hosts' true costs, of the logarithm
	Within     stats.Number   `json:"within"`      // standard deviation of a typical host's measured cost around its true one, of the logarithm
	Share      stats.Number   `json:"share"`       // part of the variance that is between hosts
	Slower     int            `json:"slower"`      // hosts whose own verdict is slower
	Faster     int            `json:"faster"`      // hosts whose own verdict is faster
	Equivalent int            `json:"equivalent"`  // hosts whose own verdict is equivalent
	Open       int            `json:"open"`        // hosts whose own verdict is inconclusive
	Doubtful   int            `json:"doubtful"`    // of the hosts that count: bare metal differed from itself by as much
	Unreliable int            `json:"unreliable"`  // hosts that do not count, because too many runs failed
	Without    int            `json:"without"`     // other hosts that measured it without an interval
	Results    []FleetResult  `json:"results"`     // one for each host that counts
}

// FleetResult is what a host measured of a configuration.
type FleetResult struct {
	Host       string         `json:"host"`         // name, as in hosts
	Change     stats.Number   `json:"change"`       // cost over the reference's, minus 1
	ChangeLow  stats.Number   `json:"change_low"`   // lower end of the interval in the host's own summary
	ChangeHigh stats.Number   `json:"change_high"`  // upper end of that interval
	Log        stats.Number   `json:"log"`          // logarithm of the ratio of means
	Variance   stats.Number   `json:"log_variance"` // its variance, from the host's rounds
	Verdict    *stats.Verdict `json:"verdict"`      // the host's own; null: no interval
	Rounds     int            `json:"rounds"`       // that count
	Trials     int            `json:"trials"`       // measured runs
	Failed     int            `json:"failed"`       // measured runs that failed
}

// FleetFact is a fact that few hosts share.
type FleetFact struct {
	Factor string `json:"factor"` // such as "CPU model" or "docker version"
	Value  string `json:"value"`  // of the factor
	Hosts  int    `json:"with"`   // hosts that share it
}

// FleetHost is a host.
type FleetHost struct {
	Name       string            `json:"name"`       // hostname; with a part of the id where two hosts have the same one
	ID         string            `json:"id"`         // a hash of the machine's identity
	Nodes      []string          `json:"nodes"`      // hostnames in its folders; several: they are one machine
	Folders    []string          `json:"folders"`    // its results folders
	Unfinished bool              `json:"unfinished"` // fewer rounds than the study asks for
	Facts      map[string]string `json:"facts"`      // by factor, such as "CPU model" or "docker version"
}

// FleetClass is a division of hosts into classes whose means differ.
type FleetClass struct {
	Treatment string           `json:"treatment"` // configuration in which they differ
	Metric    string           `json:"metric"`    // what was measured
	Factors   []string         `json:"factors"`   // by what hosts are divided; several: they divide the hosts alike
	P         stats.Number     `json:"p"`         // probability of such a difference by chance, corrected for the number of comparisons
	Explained stats.Number     `json:"explained"` // part of the variance between hosts that is between classes
	Means     []FleetClassMean `json:"means"`     // one for each class
	Others    int              `json:"others"`    // hosts in none of these classes
}

// FleetClassMean is a class of hosts.
type FleetClassMean struct {
	Values     []string     `json:"values"`      // of the factors
	Hosts      int          `json:"with"`        // hosts in it
	Change     stats.Number `json:"change"`      // geometric mean of its hosts' costs, minus 1
	ChangeLow  stats.Number `json:"change_low"`  // lower end of its interval
	ChangeHigh stats.Number `json:"change_high"` // upper end of its interval
}

// FleetOutlier is a host that is unlike the others.
type FleetOutlier struct {
	Host    string        `json:"host"`    // name, as in hosts
	Unlike  []FleetUnlike `json:"unlike"`  // configurations, the most unlike first
	Differs []FleetFact   `json:"differs"` // its facts that few hosts share
}

// FleetUnlike is a configuration in which a host is unlike the others.
type FleetUnlike struct {
	Treatment string       `json:"treatment"` // name of the configuration
	Metric    string       `json:"metric"`    // what was measured
	Change    stats.Number `json:"change"`    // the host's
	Expected  stats.Number `json:"expected"`  // mean change on the other hosts
	Distance  stats.Number `json:"distance"`  // in standard deviations: an externally studentized residual
}

// FleetFolder is a folder that does not count.
type FleetFolder struct {
	Folder string `json:"folder"` // its path
	Why    string `json:"why"`    // for people
}

// FleetOmission is a configuration that hosts left out.
type FleetOmission struct {
	Treatment string `json:"treatment"` // name of the configuration
	With      int    `json:"with"`      // hosts that left it out for this reason
	Why       string `json:"why"`       // on the first of them, for people
}

func less1(v float64) stats.Number { return stats.Number(v - 1) }

func verdictOf(v stats.Verdict) *stats.Verdict {
	if v == "" {
		return nil
	}
	return &v
}

func fleetConfiguration(f *fleet.Fleet, c *fleet.Configuration) FleetConfiguration {
	s := subjectOf(c.Row)
	low, high := c.Ratio.Bounds()
	j := FleetConfiguration{
		FleetSubject: FleetSubject{
			Treatment: s.Treatment, Name: words.EnvironmentOf(f.Sum, c.Row), Workload: s.Workload, Params: s.Params, Platform: s.Platform, Engine: s.Engine,
			Accelerator: s.Accelerator, Provisioning: s.Provisioning, Instance: s.Instance, Network: s.Network, Isolation: s.Isolation,
			Metric: words.Caption(c.Row.Metric.Name), Unit: c.Row.Metric.Unit, Secondary: c.Row.IsFigure, Emulated: c.Emulated(),
		},
		HostsWith: c.Across.N, Verdict: verdictOf(c.Verdict), Change: less1(c.Ratio.Value), ChangeLow: less1(c.Ratio.Low), ChangeHigh: less1(c.Ratio.High),
		AtLeast: less1(low), AtMost: less1(high), NextLow: less1(c.Next.Low), NextHigh: less1(c.Next.High),
		Between: stats.Number(c.Across.Between), Within: stats.Number(c.Across.Within), Share: stats.Number(c.Across.Share()),
		Slower: c.Verdicts[stats.Slower], Faster: c.Verdicts[stats.Faster], Equivalent: c.Verdicts[stats.Equivalent], Open: c.Verdicts[stats.Inconclusive],
		Doubtful: c.Doubtful, Unreliable: c.Unreliable, Without: c.Without, Results: []FleetResult{},
	}
	for i, r := range c.Results {
		j.Results = append(j.Results, FleetResult{
			Host: c.Hosts[i].Name, Change: less1(r.Cost.Value), ChangeLow: less1(r.Cost.Low), ChangeHigh: less1(r.Cost.High),
			Log: stats.Number(r.Effect.Value), Variance: stats.Number(r.Effect.Variance), Verdict: verdictOf(r.Finding(f.Margin)),
			Rounds: r.Rounds, Trials: r.Trials, Failed: r.Failed,
		})
	}
	return j
}

func fleetAnswer(f *fleet.Fleet) FleetAnswer {
	a := FleetAnswer{
		Schema: FleetSchema, Study: f.Study, Confidence: 1 - stats.Alpha, Margin: f.Margin, Reference: f.Reference(), Headline: words.FleetHeadline(f),
		Folders: f.Folders, Configurations: []FleetConfiguration{}, Comparisons: f.Compared, Classes: []FleetClass{}, Outliers: []FleetOutlier{},
		Hosts: []FleetHost{}, LeftOut: []FleetFolder{}, NotMeasured: []FleetOmission{},
	}
	for _, c := range f.Configurations {
		a.Configurations = append(a.Configurations, fleetConfiguration(f, c))
	}
	for _, c := range f.Classes {
		j := FleetClass{
			Treatment: c.Of.Row.Treatment.ID, Metric: words.Caption(c.Of.Row.Metric.Name),
			P: stats.Number(c.P), Explained: stats.Number(c.Explained), Others: c.Others,
		}
		for _, factor := range c.Factors {
			j.Factors = append(j.Factors, words.FleetFactor(factor))
		}
		for _, m := range c.Means {
			j.Means = append(j.Means, FleetClassMean{m.Values, m.Cost.N, less1(m.Cost.Value), less1(m.Cost.Low), less1(m.Cost.High)})
		}
		a.Classes = append(a.Classes, j)
	}
	for _, o := range f.Outliers {
		j := FleetOutlier{Host: o.Host.Name, Differs: []FleetFact{}}
		for _, u := range o.In {
			j.Unlike = append(j.Unlike, FleetUnlike{
				u.Of.Row.Treatment.ID, words.Caption(u.Of.Row.Metric.Name), less1(u.Cost.Value), less1(u.Expected), stats.Number(u.Distance),
			})
		}
		for _, r := range o.Differs {
			j.Differs = append(j.Differs, FleetFact{words.FleetFactor(r.Factor), r.Value, r.Hosts})
		}
		a.Outliers = append(a.Outliers, j)
	}
	for _, h := range f.Hosts {
		j := FleetHost{Name: h.Name, ID: h.ID, Nodes: h.Nodes, Folders: h.Folders, Unfinished: h.Unfinished, Facts: make(map[string]string, len(h.Facts))}
		for _, fact := range h.Facts {
			v := fact.Value()
			j.Facts[words.FleetFactor(v.Factor)] = v.Value
		}
		a.Hosts = append(a.Hosts, j)
	}
	for _, u := range f.Unread {
		a.LeftOut = append(a.LeftOut, FleetFolder{u.Dir, words.FleetUnread(u)})
	}
	for _, l := range f.Omitted {
		a.NotMeasured = append(a.NotMeasured, FleetOmission{l.Treatment.ID, l.Hosts, words.Message(l.Reason)})
	}
	return a
}

// Fleet writes the answer as `tare summary FLEET --format json` promises it.
func Fleet(w io.Writer, f *fleet.Fleet) error { return write(w, fleetAnswer(f)) }

// FleetTable writes a line for each configuration as CSV. The columns are the keys of the JSON that have one value. For a terminal, each cell is fit to
// be shown.
func FleetTable(w io.Writer, f *fleet.Fleet, onTerminal bool) error {
	fit := asIs
	if onTerminal {
		fit = words.Plain
	}
	c := csv.NewWriter(w)
	var heads []string
	inCells(reflect.ValueOf(FleetConfiguration{}), func(name string, _ reflect.Value) { heads = append(heads, name) })
	lines := [][]string{heads}
	for _, of := range f.Configurations {
		var line []string
		inCells(reflect.ValueOf(fleetConfiguration(f, of)), func(_ string, v reflect.Value) { line = append(line, fit(cell(v))) })
		lines = append(lines, line)
	}
	if err := c.WriteAll(lines); err != nil {
		return fmt.Errorf("writing the fleet as CSV: %w", err)
	}
	return nil
}

// FleetClaims writes the verdicts of hosts on claims as `tare claims FLEET --format json` promises them.
func FleetClaims(w io.Writer, f *fleet.Fleet, judged []fleet.Claimed) error {
	type claimed struct {
		claims.Claim
		Hosts   int      `json:"hosts"`
		Holds   int      `json:"holds"`
		Refuted int      `json:"does_not_hold"`
		Open    int      `json:"not_decided"`
		Not     int      `json:"not_testable"`
		On      []string `json:"refuted_on"`
		Why     string   `json:"why"` // of the first host that refutes it, else of the first host
	}
	all := []claimed{}
	for _, c := range judged {
		j := claimed{
			Claim: c.Claim, Hosts: len(f.Hosts), Holds: c.Hosts[claims.Holds], Refuted: c.Hosts[claims.DoesNotHold], Open: c.Hosts[claims.NotDecided],
			Not: c.Hosts[claims.NotTestable], On: []string{},
		}
		for _, h := range c.Refuted {
			j.On = append(j.On, h.Name)
		}
		if c.First != nil {
			j.Why = words.Verdict(c.First)
		}
		all = append(all, j)
	}
	return write(w, all)
}

// FleetAdvice writes what hosts recommend as `tare advise FLEET --format json` promises it.
func FleetAdvice(w io.Writer, all []*fleet.Advised) error {
	type choice struct {
		Configuration string   `json:"configuration"`
		First         int      `json:"recommended"`
		Good          int      `json:"as_good"`
		Ranked        int      `json:"ranked"`
		Worse         []string `json:"worse_on"`
	}
	type advised struct {
		Workload string   `json:"workload"`
		Metric   string   `json:"metric"`
		Hosts    int      `json:"hosts"`
		Choices  []choice `json:"choices"`
	}
	out := []advised{}
	for _, a := range all {
		j := advised{a.Workload, a.Metric.Name, a.Hosts, []choice{}}
		for _, c := range a.Choices {
			k := choice{words.Choice(c.Treatment, a.Networks), c.First, c.Good, c.Ranked, []string{}}
			for _, h := range c.Worse {
				k.Worse = append(k.Worse, h.Name)
			}
			j.Choices = append(j.Choices, k)
		}
		out = append(out, j)
	}
	return write(w, out)
}
