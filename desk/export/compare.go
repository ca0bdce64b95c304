package export

import (
	"io"
	"slices"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Comparison writes it as `tare compare --format json` promises it. What is not known is null.
func Comparison(w io.Writer, c *compare.Comparison) error {
	type change struct {
		Treatment string          `json:"treatment"`
		Name      string          `json:"name"`
		Metric    string          `json:"metric,omitempty"` // where treatments have several that are compared
		Unit      string          `json:"unit"`
		Better    notebook.Better `json:"better,omitempty"` // which values of the metric are better; absent: lower ones
		Old       stats.Number    `json:"old"`              // the means
		New       stats.Number    `json:"new"`
		Relative  bool            `json:"relative"` // ratio is of the ratios to the reference in each folder; else of the means
		Ratio     stats.Number    `json:"ratio"`    // new over old
		Low       stats.Number    `json:"low"`
		High      stats.Number    `json:"high"`
		Means     stats.Number    `json:"means"` // new mean over old, as if the host were as fast in both folders
		MeansLow  stats.Number    `json:"means_low"`
		MeansHigh stats.Number    `json:"means_high"`
		Level     float64         `json:"level"`
		OldRounds int             `json:"old_rounds"`
		NewRounds int             `json:"new_rounds"`
		Answer    stats.Verdict   `json:"verdict,omitempty"` // absent: it is of the reference
		Why       compare.Why     `json:"why,omitempty"`     // more rounds would not settle an inconclusive one: doubtful, failing, missing
		Emulated  bool            `json:"emulated"`
		Rounds    int             `json:"rounds_to_decide"` // of each folder, about; 0: decided, or not foreseeable
	}
	ids := func(rows []*data.Row) []string {
		all := []string{}
		for _, r := range rows {
			all = append(all, r.Treatment.ID)
		}
		return all
	}
	out := struct {
		Headline    string   `json:"headline"`
		Margin      float64  `json:"margin"`
		Reference   string   `json:"reference"` // environment to which each folder's ratios are relative
		InTurns     bool     `json:"in_turns"`  // two kernels in one folder: ratio is of the means of the same rounds
		Differences []string `json:"differences"`
		Changes     []change `json:"changes"`
		Host        []change `json:"host"` // of the reference itself: the host's change, which decides nothing
		Gone        []string `json:"gone"`
		Added       []string `json:"added"`
	}{words.Compared(c), c.Margin, referenceOf(c.Old), c.InTurns(), list(words.Doubts(c.Differences)), []change{}, []change{}, ids(c.Gone), ids(c.Added)}
	several := slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return x.Figure })
	told := func(x compare.Change) change {
		metric := ""
		if several {
			metric = words.Caption(x.Old.Metric.Name)
		}
		return change{
			Treatment: x.Old.Treatment.ID, Name: words.ChangedWhere(c, x), Metric: metric, Unit: x.Old.Metric.Unit, Better: x.Old.Metric.Better, Old: stats.Number(x.Old.Mean), New: stats.Number(x.New.Mean),
			Relative: x.Relative, Ratio: stats.Number(x.Ratio.Value), Low: stats.Number(x.Ratio.Low), High: stats.Number(x.Ratio.High),
			Means: stats.Number(x.Means.Value), MeansLow: stats.Number(x.Means.Low), MeansHigh: stats.Number(x.Means.High), Level: x.Level, OldRounds: x.Old.Rounds, NewRounds: x.New.Rounds,
			Answer: x.Answer, Why: x.Why, Emulated: !x.Old.Representative, Rounds: x.Rounds,
		}
	}
	for _, x := range c.Changes {
		out.Changes = append(out.Changes, told(x))
	}
	for _, x := range c.Host {
		out.Host = append(out.Host, told(x))
	}
	return write(w, out)
}
