package model

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"tare/desk/data"
	"tare/notebook"
)

// world is what is true of one platform, and how it is measured.
type world struct {
	pto, perCPU, fixed float64
	misfit             float64 // standard deviation of what each size does in addition to the form
	noise              float64 // relative, of one round's value; the same of bare metal
	small              float64 // the noise of the smallest size is this many times larger, falling with cores; 0: 1
	rounds             int
	hosts              map[int][]float64 // sizes measured, by the host's cores
}

// paperSizes are those of the paper, on its host.
var paperSizes = map[int][]float64{112: {2, 4, 8, 16, 32, 64}}

func (w world) ratio(cores float64, host int) float64 {
	return 1 + w.pto + w.perCPU*(float64(host)-cores)/cores + w.fixed/cores
}

// measure is what a study of the world gives.
func (w world) measure(rng *rand.Rand) *data.Summary {
	s := &data.Summary{}
	for at, h := range slices.Sorted(maps.Keys(w.hosts)) {
		s.Folders = append(s.Folders, data.Folder{Dir: fmt.Sprintf("host%d", h)})
		for _, c := range w.hosts[h] {
			bm, cn := w.rows(at, h, c)
			truth := w.ratio(c, h) + w.misfit*rng.NormFloat64()
			noise := w.noise
			if w.small > 0 {
				noise *= 1 + (w.small-1)*w.hosts[h][0]/c
			}
			for round := range w.rounds {
				base := 100 / c * math.Exp(0.05*rng.NormFloat64())
				bm.Values = append(bm.Values, data.Value{Block: data.Block{Folder: at, Round: round}, Mean: base * math.Exp(noise*rng.NormFloat64()), Trials: 1})
				cn.Values = append(cn.Values, data.Value{Block: data.Block{Folder: at, Round: round}, Mean: base * truth * math.Exp(noise*rng.NormFloat64()), Trials: 1})
			}
			s.Rows = append(s.Rows, &bm, &cn)
		}
	}
	rate(s)
	return s
}

// rows are a size's bare metal and its container, without values.
func (w world) rows(folder, host int, cores float64) (bm, cn data.Row) {
	instance := notebook.Instance{Name: fmt.Sprintf("%g/%gGB", cores, 4*cores), Cores: cores, Memory: int64(4 * cores * (1 << 30))}
	bm = data.Row{
		Treatment: notebook.Treatment{ID: fmt.Sprintf("bm-%g", cores), Workload: "wordpress", Platform: notebook.BM, Instance: instance},
		Host:      fmt.Sprintf("host%d", host), HostID: fmt.Sprintf("id%d", folder), HostCores: host, CHR: cores / float64(host),
		Metric: notebook.Metric{Name: "mean response time", Unit: "s"}, Rounds: w.rounds, Trials: w.rounds, Guests: w.rounds, Representative: true,
		Baseline: fmt.Sprintf("bm-%g", cores),
	}
	cn = bm
	cn.Treatment.ID, cn.Treatment.Platform, cn.Treatment.Engine, cn.Treatment.Provisioning = fmt.Sprintf("cn-%g", cores), notebook.CN, "docker", "vanilla"
	return bm, cn
}

// rate gives the rows their ratios, as data.Read does.
func rate(s *data.Summary) {
	for _, r := range s.Rows {
		for _, b := range s.Rows {
			if b.HostID != r.HostID || b.Treatment.ID != r.Baseline {
				continue
			}
			q := s.Ratio(r, b, 0.05)
			r.Ratio, r.RatioLow, r.RatioHigh, r.RatioRounds = q.Value, q.Low, q.High, q.N
			if b == r {
				r.Ratio, r.RatioLow, r.RatioHigh = 1, 1, 1
			}
		}
	}
}
