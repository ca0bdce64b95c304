package study

import (
	"context"
	"slices"

	"tare/lab/crowd"
	"tare/notebook"
)

// mostIdle is how much longer a working guest may take because of idle guests, as a share. Above it, guests follow each other.
const mostIdle = 0.005

// Together are the treatments of the largest group whose guests live at the same time; none: there is no such group.
func (p *Plan) Together() (most []notebook.Treatment) {
	groups := baselinesOf(&p.Study)
	for _, b := range p.batches(p.Study.Treatments, groups) {
		if all := b.all(); len(all) > max(len(most), 1) {
			most = all
		}
	}
	return most
}

// Separate makes guests follow each other if idle guests slow working guests down too much. It reports whether it did.
func (p *Plan) Separate(c *notebook.IdleCost) bool {
	if c == nil || p.Study.Design.Order == notebook.OrderInterleaved || !(c.Low > 1+mostIdle) {
		return false
	}
	clear(p.together)
	return true
}

// Idle makes an idle guest of each of these treatments, calls cost with them, and removes them. If one cannot be made,
// it does not call cost. An error means that a guest could not be removed.
func (p *Plan) Idle(ctx context.Context, lab Lab, of []notebook.Treatment, cost func(guests []crowd.Guest)) (err error) {
	var guests []crowd.Guest
	defer func() { err = crowd.DestroyAll(ctx, guests) }() // what is left would disturb the study
	for _, t := range of {
		making, cancel := context.WithTimeout(ctx, crowd.ProvisionTimeout)
		g, err := lab.Provision(making, crowd.Want{Treatment: t, ID: crowd.NewID(), Work: p.readyOf(t)})
		cancel()
		if err != nil {
			return nil
		}
		guests = append(guests, g)
	}
	cost(guests)
	return nil
}

// Engines are the platforms and engines of treatments, each once, sorted.
func Engines(of []notebook.Treatment) (names []string) {
	for _, t := range of {
		name := t.Platform
		if t.Engine != "" {
			name += " " + t.Engine
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
