package words

import "tare/desk/data"

// Saving is what is to be said of how a row's guests were saved, and why others were not.
func Saving(r *data.Row) (all []string) {
	if r.Saving == nil {
		return nil
	}
	for _, n := range r.Saving.How {
		all = append(all, Platform(r.Treatment.Platform)+" restored: "+n)
	}
	for _, n := range r.Saving.Not {
		all = append(all, "not restored: "+n)
	}
	for _, n := range r.Saving.WentOn {
		all = append(all, "proof that it went on: "+n)
	}
	return all
}
