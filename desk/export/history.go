package export

import (
	"io"
	"time"

	"tare/desk/history"
	"tare/desk/words"
	"tare/stats"
)

// History writes a history as `tare history --format json` promises it.
func History(w io.Writer, h *history.History) error {
	type point struct {
		Folder string       `json:"folder"`
		Ended  time.Time    `json:"ended"`
		Value  stats.Number `json:"value"`
	}
	type change struct {
		Folder      string       `json:"folder"` // the first with the new level
		Ended       time.Time    `json:"ended"`
		Before      stats.Number `json:"before"`
		After       stats.Number `json:"after"`
		Differences []string     `json:"differences"`
	}
	type track struct {
		Host      string       `json:"host"`
		HostID    string       `json:"host_id"`
		Workload  string       `json:"workload"`
		Name      string       `json:"name"`
		Treatment string       `json:"treatment"`
		Metric    string       `json:"metric"`
		Unit      string       `json:"unit"`
		Examined  bool         `json:"examined"`  // the history is long enough to look for changes
		Reference bool         `json:"reference"` // its changes are the host's
		Relative  bool         `json:"relative"`  // values are costs relative to the baseline; otherwise means in the unit
		Spread    stats.Number `json:"spread"`
		Points    []point      `json:"points"`
		Changes   []change     `json:"changes"`
	}
	out := struct {
		Study  string  `json:"study"`
		Runs   int     `json:"runs"`
		Tracks []track `json:"configurations"`
	}{h.Runs[0].Folders[0].Study.Name, len(h.Runs), []track{}}
	for _, t := range h.Tracks {
		last := t.Latest()
		r := last.Row
		v := track{r.Host, r.HostID, r.Treatment.Label(), words.Label(last.Run, r), r.Treatment.ID, r.Metric.Name, r.Metric.Unit, t.Examined(), t.Reference, t.Relative, stats.Number(t.Spread), []point{}, []change{}}
		for _, p := range t.Points {
			v.Points = append(v.Points, point{p.Run.Folders[0].Dir, history.At(p.Run), stats.Number(p.Value)})
		}
		for _, c := range t.Changes {
			v.Changes = append(v.Changes, change{c.First.Run.Folders[0].Dir, history.At(c.First.Run), stats.Number(c.Before), stats.Number(c.After), list(words.Doubts(c.Differences))})
		}
		out.Tracks = append(out.Tracks, v)
	}
	return NewEncoder(w).Encode(out)
}
