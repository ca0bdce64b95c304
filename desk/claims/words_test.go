package claims_test

import (
	"io"

	"tare/desk/claims"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/desk/words"
)

func init() {
	claims.Why = func(v claims.Verdict) string { return words.Verdict(&v) }
	claims.Named = words.Claimed
	claims.Compared = func(e claims.Evidence) string { return words.Comparison(e.Comparison) }
	claims.Table = func(w io.Writer, vs []claims.Verdict, width int) error {
		return terminal.Verdicts(w, vs, nil, terminal.Screen{Width: width})
	}
	claims.JSON = export.Verdicts
	claims.Reasons = func(vs []claims.Verdict) (all []claims.Said, notes []string) {
		reasons, notes := words.Reasons(vs)
		pieces := func(ps []words.Piece) (out []claims.Piece) {
			for _, p := range ps {
				out = append(out, claims.Piece(p))
			}
			return out
		}
		for _, r := range reasons {
			all = append(all, claims.Said{Why: pieces(r.Why), Missing: pieces(r.Missing)})
		}
		return all, notes
	}
}
