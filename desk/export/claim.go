package export

import (
	"io"

	"tare/desk/claims"
	"tare/desk/words"
	"tare/stats"
)

// Verdicts writes the verdicts as `tare claims --format json` promises them. What is not known is null.
func Verdicts(w io.Writer, vs []claims.Verdict) error {
	type evidence struct {
		What       string       `json:"what"`
		Treatments [][]string   `json:"treatments"` // ids: of what is compared, in pairs or one by one; two of them where one is held over another
		Ratio      stats.Number `json:"ratio"`      // what the comparison comes to: a ratio where unit is empty
		Unit       string       `json:"unit,omitempty"`
		Low        stats.Number `json:"low"`
		High       stats.Number `json:"high"`
		Level      float64      `json:"level"`
		Rounds     int          `json:"rounds"`
		Wanted     string       `json:"wanted"`
		Met        claims.Met   `json:"met"`
		Emulated   bool         `json:"emulated,omitempty"` // the VM was: it is of the guest's own memory, which does not depend on it
	}
	type verdict struct {
		claims.Claim
		PaperCHR *float64      `json:"paper_chr"` // null: the finding names a CHR, or is not about small containers
		Needs    []string      `json:"needs"`
		Verdict  claims.Answer `json:"verdict"`
		Why      string        `json:"why"`
		Evidence []evidence    `json:"evidence"`
		Missing  []string      `json:"missing"`
		More     *int          `json:"more_rounds"` // about so many would decide it; null: it is decided, nothing of it can be, or nobody can tell
	}
	all := []verdict{}
	for i := range vs {
		v, c := &vs[i], &vs[i].Claim
		j := verdict{
			Claim: *c, Needs: list(words.Selectors(v.Needs)), Verdict: v.Answer, Why: words.Verdict(v), Evidence: []evidence{}, Missing: list(words.Gaps(v.Missing)),
		}
		if v.More > 0 {
			j.More = &v.More
		}
		if c.PaperCHR > 0 {
			j.PaperCHR = &c.PaperCHR
		}
		for _, e := range v.Evidence {
			ids := func(t claims.Term) []string {
				if t.By == claims.ByValue {
					return []string{t.Of.ID}
				}
				return []string{t.Of.ID, t.To.ID}
			}
			x := evidence{
				What: words.Comparison(e.Comparison), Treatments: [][]string{ids(e.Comparison.Over)}, Ratio: stats.Number(e.Estimate), Unit: e.Unit, Low: stats.Number(e.Low), High: stats.Number(e.High),
				Level: e.Level, Rounds: e.Rounds, Wanted: words.Region(e.Wanted), Met: e.Met, Emulated: e.Emulated,
			}
			if b := e.Comparison.Below; b != nil {
				x.Treatments = append(x.Treatments, ids(*b))
			}
			j.Evidence = append(j.Evidence, x)
		}
		all = append(all, j)
	}
	return write(w, all)
}
