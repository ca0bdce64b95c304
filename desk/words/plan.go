package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Planned says what a run would do, in lines of a label and its text. A label is empty where a line continues the one above. decidable and all are
// numbers of published claims; all is 0 if the study names none.
func Planned(v notebook.Preview, decidable, all int) (lines [][2]string) {
	add := func(label, format string, args ...any) {
		lines = append(lines, [2]string{label, fmt.Sprintf(format, args...)})
	}
	add("configurations", "%d, %s of each", len(v.Treatments), Between(v.Rounds[0], v.Rounds[1], "round"))
	for _, of := range data.Together(crossed(v.Treatments), func(a, b placed) bool { return a.environments == b.environments }) {
		var works []string
		for _, same := range data.Together(of, func(a, b placed) bool { return a.work == b.work }) {
			var sizes []string
			for _, p := range same {
				sizes = append(sizes, p.size)
			}
			works = append(works, same[0].work+" at "+List(sizes))
		}
		add("", "%s, on: %s", strings.Join(works, "; "), of[0].environments)
	}
	if len(v.LeftOut) == 0 {
		add("left out", "nothing")
	}
	for i, of := range data.Together(v.LeftOut, sameReason) {
		label := ""
		if i == 0 {
			label = "left out"
		}
		add(label, "%s", omitted(of))
	}
	for i, u := range v.Untried {
		label := ""
		if i == 0 {
			label = "not tried"
		}
		add(label, "%s, for %s: %s", Plain(u.Name), Count(u.Configurations, "configuration"), Plain(u.Why))
	}
	if v.Done > 0 {
		add("done", "%s that the results folder already has", Count(v.Done, "instance"))
	}
	if v.Guests.High == 1 {
		add("instances", "1 process, container or VM")
	} else {
		add("instances", "%s processes, containers and VMs", about(v.Guests))
	}
	add("runs", "%s, with warm-ups", about(v.Trials))
	add("time", "%s", Lasting(v))
	if len(v.Works) > 1 {
		for _, p := range v.Works {
			i := slices.IndexFunc(v.Treatments, func(t notebook.Treatment) bool { return t.Label() == p.Work })
			if i < 0 {
				continue // a preview that Tare did not make
			}
			add("", "%s: %s", place(v.Treatments[i]).work, Time(p.Seconds))
		}
	}
	add("", "based on %s", basis(v))
	add("disk", "%s", disk(v))
	if len(v.HostCode) == 0 {
		add("as root", "none of the work runs directly on the host")
	}
	for i, what := range v.HostCode {
		label := ""
		if i == 0 {
			label = "as root"
		}
		add(label, "%s, on the host itself", what)
	}
	if all > 0 {
		add("claims", "%d of the %s can be decided here", decidable, Count(all, "published claim"))
	}
	return lines
}

// Beginning says in three lines what a run is about to do.
func Beginning(v notebook.Preview) (lines []string) {
	if v.Guests.High == 0 {
		return []string{"measures: nothing more, because the folder has all rounds of this study; another --out measures it again"}
	}
	measures := "measures: " + Count(len(v.Treatments), "configuration") + " × "
	if timeEnds(v) && v.Rounds[0] == v.Rounds[1] {
		measures += fmt.Sprintf("as many rounds as fit into the time budget, at most %s", Thousands(v.Rounds[1]))
	} else {
		measures += fmt.Sprintf("%s, %s runs with warm-ups", Between(v.Rounds[0], v.Rounds[1], "round"), about(v.Trials))
	}
	lines = append(lines, measures)
	if n := len(v.LeftOut); n > 0 {
		lines = append(lines, "left out: "+Count(n, "configuration"))
	} else {
		lines = append(lines, "left out: nothing")
	}
	return append(lines, "takes: "+Lasting(v))
}

func sameReason(a, b notebook.LeftOut) bool { return a.Reason.Equal(b.Reason) }

// omitted says which treatments are left out for one reason.
func omitted(of []notebook.LeftOut) string {
	what := Work(of[0].Treatment) + " at " + of[0].Treatment.Instance.Name + ", " + Environment(of[0].Treatment, false)
	if more := len(of) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return what + ": " + Message(of[0].Reason)
}

// placed is a workload at a size, and where it runs.
type placed struct{ work, size, environments string }

// crossed groups treatments by their work and size.
func crossed(all []notebook.Treatment) (places []placed) {
	for _, of := range data.Together(all, func(a, b notebook.Treatment) bool { return place(a) == place(b) }) {
		var each []string
		for _, t := range of {
			each = append(each, Environment(t, true))
		}
		at := place(of[0])
		places = append(places, placed{at.work, at.size, strings.Join(slices.Compact(each), "; ")})
	}
	return places
}

// place names a treatment's work, and its size with the host's.
func place(t notebook.Treatment) placed {
	size := t.Instance.Name
	if t.HostCores > 0 {
		size += fmt.Sprintf(" on %d CPUs", t.HostCores)
	}
	return placed{work: Plain(Work(t)), size: Plain(size)}
}

// Lasting says how long a run takes: "about 6 to 14 min, 1 to 3 min of it before the first round".
func Lasting(v notebook.Preview) string {
	text := "about " + Time(v.Seconds)
	switch {
	case timeEnds(v):
		text += ", limited by the time budget"
	case len(v.Unknown) > 0:
		text += ", plus " + about(v.More) + " runs of " + List(plain(v.Unknown)) + " (their time is not known)"
	}
	if v.Preparing.High > 5 {
		text += "; " + Time(v.Preparing) + " of it before the first round"
	}
	return text
}

func plain(all []string) (texts []string) {
	for _, s := range all {
		texts = append(texts, Plain(s))
	}
	return texts
}

// timeEnds reports whether the time budget can end the run before its last round.
func timeEnds(v notebook.Preview) bool { return v.BudgetS > 0 && v.Seconds.High >= v.BudgetS }

// basis says what an estimate rests on.
func basis(v notebook.Preview) string {
	if len(v.Measured) > 0 {
		return "what " + List(plain(v.Measured)) + " measured on this host, and on usual costs"
	}
	return "usual costs of guests and workloads; a run on this host may differ"
}

// disk says what images take.
func disk(v notebook.Preview) string {
	switch {
	case v.Disk.High == 0:
		return "nothing new but the results"
	case v.Roots == 0:
		return "up to " + Bytes(int64(v.Disk.High)) + " for engines' copies of images"
	}
	return fmt.Sprintf("%s to %s for %s and the engines' copies", Bytes(int64(v.Disk.Low)), Bytes(int64(v.Disk.High)), Count(v.Roots, "new root filesystem"))
}

// about writes whole numbers from the least to the greatest: "12 to 40".
func about(s notebook.Span) string {
	low, high := int(math.Floor(s.Low)), int(math.Ceil(s.High))
	if low == high {
		return Thousands(low)
	}
	return Thousands(low) + " to " + Thousands(high)
}

// units are units of time for estimates, from the greatest.
var units = []struct {
	name  string
	s     float64
	least float64 // shortest time that is written in this unit, in seconds
}{{"days", 86400, 2 * 86400}, {"h", 3600, 2 * 3600}, {"min", 60, 90}, {"s", 1, 0}}

// Time writes a span of seconds outwards, in whole units: "40 s to 3 min", "6 to 14 min".
func Time(s notebook.Span) string { return spanned(s, " to ") }

// TimeBriefly does the same for a table: "6–14 min".
func TimeBriefly(s notebook.Span) string { return spanned(s, "–") }

func spanned(s notebook.Span, to string) string {
	write := func(seconds float64, round func(float64) float64) (n float64, unit string) {
		for _, u := range units {
			if seconds >= u.least {
				return round(seconds / u.s), u.name
			}
		}
		return 0, "s"
	}
	low, lowUnit := write(s.Low, math.Floor)
	high, highUnit := write(s.High, math.Ceil)
	switch {
	case lowUnit != highUnit:
		if to == "–" {
			to = " – "
		}
		return fmt.Sprintf("%.0f %s%s%.0f %s", low, lowUnit, to, high, highUnit)
	case low == high:
		return fmt.Sprintf("%.0f %s", low, lowUnit)
	}
	return fmt.Sprintf("%.0f%s%.0f %s", low, to, high, highUnit)
}
