package export

import (
	"io"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// subject is what an answer is about: a treatment on its host, as every answer's JSON has it.
type subject struct {
	Treatment    string            `json:"treatment"`
	Name         string            `json:"name,omitempty"`
	Host         string            `json:"host"`
	Workload     string            `json:"workload"`
	Params       map[string]string `json:"params"`
	Platform     string            `json:"platform"`
	Engine       *string           `json:"engine"`
	Accelerator  *string           `json:"accelerator"`
	Provisioning *string           `json:"provisioning"`
	Instance     string            `json:"instance"`
	Network      *string           `json:"network"`
	Isolation    *string           `json:"isolation"`
	Machine      *string           `json:"machine,omitempty"`
	HostCores    int               `json:"host_cores"`
	AA           bool              `json:"aa"`
}

func subjectOf(r *data.Row) subject {
	t := r.Treatment
	return subject{
		Treatment: t.ID, Host: r.Host, Workload: t.Workload, Params: params(t.Params), Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
		Provisioning: word(t.Provisioning), Instance: t.Instance.Name, Network: word(t.Network), Isolation: word(t.Isolation), Machine: word(t.Machine), HostCores: r.HostCores, AA: t.AA,
	}
}

// params are never null.
func params(p map[string]string) map[string]string {
	if p == nil {
		return map[string]string{}
	}
	return p
}

// number is null where it is not known, or has no bounds.
func number(f float64) *float64 {
	if !stats.Finite(f) {
		return nil
	}
	return &f
}

// word is null where it is empty.
func word(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// list is never null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// write writes an answer as indented JSON.
func write(w io.Writer, answer any) error {
	e := NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

// Summary writes the rows as `tare summary --format json` promises them, in the order of the tables. What is not known is
// null.
func Summary(w io.Writer, s *data.Summary) error {
	type secondary struct {
		Name   string   `json:"name"`
		Unit   string   `json:"unit"`
		Mean   *float64 `json:"mean"`
		Low    *float64 `json:"low"`
		High   *float64 `json:"high"`
		Rounds int      `json:"rounds"`

		Better notebook.Better `json:"better,omitempty"` // which values are better; absent: it is not said
		Ratio  *interval       `json:"ratio,omitempty"`  // to the baseline, where it is said
	}
	type row struct {
		subject
		CHR            *float64        `json:"chr"`
		Metric         string          `json:"metric"`
		Unit           string          `json:"unit"`
		Better         notebook.Better `json:"better,omitempty"` // which values of the metric are better; absent: lower ones
		Guests         int             `json:"guests"`
		Trials         int             `json:"trials"`
		Failed         int             `json:"failed"`
		Mean           *float64        `json:"mean"`
		MeanLow        *float64        `json:"mean_low"`
		MeanHigh       *float64        `json:"mean_high"`
		Ratio          *float64        `json:"ratio"`
		RatioLow       *float64        `json:"ratio_low"`
		RatioHigh      *float64        `json:"ratio_high"`
		RatioRobust    *float64        `json:"ratio_robust"`       // Hodges-Lehmann's estimate
		Disturbed      int             `json:"rounds_disturbed"`   // in which the host did much beside its guest
		OfUsual        *interval       `json:"of_usual,omitempty"` // of VMs that are made otherwise than usual: the mean over the usual one's
		Secondary      []secondary     `json:"also,omitempty"`     // of workloads that have secondary metrics
		Weights        *weights        `json:"weights,omitempty"`  // where guests were weighed
		Representative bool            `json:"representative"`
		Notes          []string        `json:"notes"`
	}
	rows := []row{}
	for _, table := range s.Tables() {
		for _, r := range table {
			j := row{
				subject: subjectOf(r), CHR: number(r.CHR), Metric: r.Metric.Name, Unit: r.Metric.Unit, Better: r.Metric.Better, Guests: r.Guests, Trials: r.Trials, Failed: r.Failed,
				Mean: number(r.Mean), MeanLow: number(r.MeanLow), MeanHigh: number(r.MeanHigh), Ratio: number(r.Ratio), RatioLow: number(r.RatioLow), RatioHigh: number(r.RatioHigh),
				RatioRobust: number(r.Robust), Disturbed: r.Disturbed, Weights: weightsOf(r.Weights),
				Representative: r.Representative, Notes: list(words.Doubts(r.Doubts)),
			}
			if q, ok := s.OfUsual(r); ok {
				of := quotient(q)
				j.OfUsual = &of
			}
			for _, a := range r.Secondary {
				it := secondary{Name: a.Metric.Name, Unit: a.Metric.Unit, Mean: number(a.Mean), Low: number(a.Low), High: number(a.High), Rounds: a.Rounds, Better: a.Metric.Better}
				for _, f := range r.Figures {
					if f.Metric == a.Metric {
						ratio := quotient(f.Quotient())
						it.Ratio = &ratio
					}
				}
				j.Secondary = append(j.Secondary, it)
			}
			rows = append(rows, j)
		}
	}
	return write(w, rows)
}
