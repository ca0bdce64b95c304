package export

import (
	"bytes"
	"encoding/json"
	"io"

	"tare/desk/data"
	"tare/desk/show"
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
		Treatment: t.ID, Host: r.Host, Workload: t.Workload, Params: params(t.Assigned()), Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
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
		Name   string       `json:"name"`
		Unit   string       `json:"unit"`
		Mean   stats.Number `json:"mean"`
		Low    stats.Number `json:"low"`
		High   stats.Number `json:"high"`
		Rounds int          `json:"rounds"`

		Better notebook.Better `json:"better,omitempty"` // which values are better; absent: it is not said
		Ratio  stats.Quotient  `json:"ratio,omitzero"`   // to the baseline, where it is said
	}
	type row struct {
		subject
		CHR         stats.Number    `json:"chr"`
		Metric      string          `json:"metric"`
		Unit        string          `json:"unit"`
		Better      notebook.Better `json:"better,omitempty"` // which values of the metric are better; absent: lower ones
		Guests      int             `json:"guests"`
		Trials      int             `json:"trials"`
		Failed      int             `json:"failed"`
		Mean        stats.Number    `json:"mean"`
		MeanLow     stats.Number    `json:"mean_low"`
		MeanHigh    stats.Number    `json:"mean_high"`
		Ratio       stats.Number    `json:"ratio"`
		RatioLow    stats.Number    `json:"ratio_low"`
		RatioHigh   stats.Number    `json:"ratio_high"`
		RatioRobust stats.Number    `json:"ratio_robust"`      // Hodges-Lehmann's estimate
		Disturbed   int             `json:"rounds_disturbed"`  // in which the host did much beside its guest
		OfUsual     stats.Quotient  `json:"of_usual,omitzero"` // of VMs that are made otherwise than usual: the mean over the usual one's
		Secondary   []secondary     `json:"also,omitempty"`    // of workloads that have secondary metrics
	}
	type rest struct { // after what the row's kind of study has
		Representative bool     `json:"representative"`
		Notes          []string `json:"notes"`
	}
	rows := []json.RawMessage{}
	for _, table := range s.Tables() {
		for _, r := range table {
			j := row{
				subject: subjectOf(r), CHR: stats.Number(r.CHR), Metric: words.Caption(r.Metric.Name), Unit: r.Metric.Unit, Better: r.Metric.Better, Guests: r.Guests, Trials: r.Trials, Failed: r.Failed,
				Mean: stats.Number(r.Mean), MeanLow: stats.Number(r.MeanLow), MeanHigh: stats.Number(r.MeanHigh), Ratio: stats.Number(r.Ratio), RatioLow: stats.Number(r.RatioLow), RatioHigh: stats.Number(r.RatioHigh),
				RatioRobust: stats.Number(r.Robust), Disturbed: r.Disturbed,
			}
			if q, ok := s.OfUsual(r); ok {
				j.OfUsual = q
			}
			for _, a := range r.Secondary {
				it := secondary{Name: words.Caption(a.Metric.Name), Unit: a.Metric.Unit, Mean: stats.Number(a.Mean), Low: stats.Number(a.Low), High: stats.Number(a.High), Rounds: a.Rounds, Better: a.Metric.Better}
				for _, f := range r.Figures {
					if f.Metric == a.Metric {
						it.Ratio = f.Quotient()
					}
				}
				j.Secondary = append(j.Secondary, it)
			}
			of := map[string]any{}
			if k := show.Of(s, r); k != nil && k.JSON != "" && r.Of != nil {
				of[k.JSON] = r.Of
			}
			whole, err := joined(j, of, rest{r.Representative, list(words.Doubts(r.Doubts))})
			if err != nil {
				return err
			}
			rows = append(rows, whole)
		}
	}
	return write(w, rows)
}

// joined are objects as one, which has their keys in this order.
func joined(objects ...any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	whole := []byte("{")
	for _, o := range objects {
		b.Reset()
		if err := e.Encode(o); err != nil {
			return nil, err
		}
		keys := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte("{")), []byte("}"))
		if len(keys) > 0 && len(whole) > 1 {
			whole = append(whole, ',')
		}
		whole = append(whole, keys...)
	}
	return append(whole, '}'), nil
}
