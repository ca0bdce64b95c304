package words

import (
	"tare/desk/data"
	"tare/notebook"
)

// Saving is what is to be said of how a row's guests were saved, and why others were not.
func Saving(r *data.Row) (all []string) {
	if r.Saving == nil {
		return nil
	}
	what := Platform(r.Treatment.Platform)
	if r.Treatment.Platform == notebook.CN { // of engines, which do it each in its way
		what += " of " + Plain(r.Treatment.Engine)
	}
	for _, n := range r.Saving.How {
		all = append(all, what+" restored: "+n)
	}
	for _, n := range r.Saving.Not {
		all = append(all, "not restored: "+n)
	}
	for _, n := range r.Saving.WentOn {
		all = append(all, "proof that it went on: "+n)
	}
	return all
}
