package export

import (
	"io"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// apart is what has no place in a list, and why.
type apart struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Advice writes the rankings as `tare advise --format json` promises them. What is not known is null.
func Advice(w io.Writer, a *advise.Advice) error {
	type choice struct {
		Rank         int          `json:"rank"`
		Name         string       `json:"name"`
		Treatment    *string      `json:"treatment"` // null where predicted
		Platform     string       `json:"platform"`
		Engine       *string      `json:"engine"`
		Provisioning *string      `json:"provisioning"`
		Network      *string      `json:"network"`
		Instance     string       `json:"instance"`
		Cores        float64      `json:"cores"`
		Memory       int64        `json:"memory"`
		CPUs         *string      `json:"cpus"`
		Predicted    bool         `json:"predicted"`
		Tied         bool         `json:"tied"`
		Near         bool         `json:"near"`
		Value        stats.Number `json:"value"`
		Low          stats.Number `json:"low"`
		High         stats.Number `json:"high"`
		Ratio        stats.Number `json:"ratio"`
		RatioLow     stats.Number `json:"ratio_low"`
		RatioHigh    stats.Number `json:"ratio_high"`
		Against      stats.Number `json:"against"`
		AgainstLow   stats.Number `json:"against_low"`
		AgainstHigh  stats.Number `json:"against_high"`
		Formats      []string     `json:"formats"`
		Notes        []string     `json:"notes"`
	}
	type ranking struct {
		Host     string            `json:"host"`
		Workload string            `json:"workload"`
		Metric   string            `json:"metric"`
		Unit     string            `json:"unit"`
		Better   notebook.Better   `json:"better,omitempty"` // which values of the metric are better; absent: lower ones
		Prefer   advise.Preference `json:"prefer"`
		ByRatio  bool              `json:"by_ratio"`
		Why      string            `json:"why"`
		TieRule  string            `json:"tie_rule"`
		Choices  []choice          `json:"choices"`
		Offers   *offers           `json:"offers,omitempty"` // absent: no objective was given
		Apart    []apart           `json:"not_ranked"`
		Notes    []string          `json:"notes"`
	}
	out := []ranking{}
	for _, r := range a.Rankings {
		j := ranking{Host: r.Host, Workload: r.Workload, Metric: words.Caption(r.Metric.Name), Unit: r.Metric.Unit, Better: r.Metric.Better, Prefer: r.Prefer, ByRatio: r.ByRatio, Why: words.Ranking(&r), TieRule: words.TieRule, Choices: []choice{}, Apart: []apart{}, Notes: list(words.Doubts(r.Doubts))}
		for _, c := range r.Choices {
			t := c.Treatment
			formats := []string{}
			for _, f := range apply.Formats {
				if apply.Expresses(f, t) {
					formats = append(formats, f)
				}
			}
			j.Choices = append(j.Choices, choice{
				c.Rank, words.Choice(t, r.Networks), word(t.ID), t.Platform, word(t.Engine), word(t.Provisioning), word(t.Network), t.Instance.Name, t.Instance.Cores, t.Instance.Memory,
				word(notebook.FormatCPUList(c.CPUs)), c.Predicted, c.Tied, c.Near, stats.Number(c.Value), stats.Number(c.Low), stats.Number(c.High), stats.Number(c.Ratio), stats.Number(c.RatioLow), stats.Number(c.RatioHigh),
				stats.Number(c.Against.Value), stats.Number(c.Against.Low), stats.Number(c.Against.High), formats, list(words.Doubts(c.Doubts)),
			})
		}
		if r.Offers != nil {
			j.Why, j.Offers = words.Offered(&r), offersOf(&r)
		}
		for _, p := range r.Apart {
			j.Apart = append(j.Apart, apart{words.Choice(p.Treatment, r.Networks), words.Doubt(p.Reason)})
		}
		out = append(out, j)
	}
	return write(w, out)
}
