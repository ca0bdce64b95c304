package notebook

// PreviewSchema names the form of a Preview in JSON.
const PreviewSchema = "tare.plan/1"

// Span is from the least to the greatest likely value.
type Span struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Plus adds another span.
func (s Span) Plus(o Span) Span { return Span{s.Low + o.Low, s.High + o.High} }

// Times multiplies the span by another.
func (s Span) Times(o Span) Span { return Span{s.Low * o.Low, s.High * o.High} }

// AtMost limits both ends.
func (s Span) AtMost(most float64) Span { return Span{min(s.Low, most), min(s.High, most)} }

// Preview is what a run would do, as far as that is known before anything is started.
type Preview struct {
	Schema     string      `json:"schema"`
	Study      string      `json:"study"`
	Title      string      `json:"title,omitempty"`
	Treatments []Treatment `json:"configurations"`
	LeftOut    []LeftOut   `json:"-"` // its reasons are messages, which need words
	Untried    []Untried   `json:"untried"`

	Rounds [2]int `json:"rounds"` // the least and the greatest number, of any configuration
	Guests Span   `json:"guests"` // processes, containers and VMs to make
	Trials Span   `json:"runs"`   // including warm-ups

	Seconds   Span          `json:"seconds"`               // the whole run, except for runs of unknown length
	Works     []PreviewPart `json:"works,omitempty"`       // its rounds by workload with parameters
	Preparing Span          `json:"preparing_s"`           // the part before the first round
	Unknown   []string      `json:"unknown,omitempty"`     // unknown length: the workloads
	More      Span          `json:"unknown_runs"`          // unknown length: the number of runs
	Measured  []string      `json:"measured,omitempty"`    // basis of the estimate: results folders, in addition to the table
	BudgetS   float64       `json:"budget_s,omitempty"`    // the time budget; 0: none
	Done      int           `json:"done_guests,omitempty"` // guests that the results folder already has

	Disk     Span     `json:"disk"`      // bytes that images and inputs take at most
	Roots    int      `json:"roots"`     // root filesystems to build
	HostCode []string `json:"host_code"` // what runs as root on this host
}

// Untried is a capability that only a guest, or root, can try.
type Untried struct {
	Name           string `json:"name"`
	Why            string `json:"why"`
	Configurations int    `json:"configurations"` // that need it
}

// PreviewPart is the part of a plan's rounds that one workload with its parameters has.
type PreviewPart struct {
	Work    string `json:"work"` // as Treatment.Label
	Guests  Span   `json:"guests"`
	Seconds Span   `json:"seconds"`
}
