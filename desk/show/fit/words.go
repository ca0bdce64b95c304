package fit

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"host_share(%s,%s)": "share of the host that a guest needs (%s below %s times its value alone)",
	"guests_fit":        "guests that fit",
})

// Say is the sentence for the result of a search.
func (f Found) Say() string {
	said := fmt.Sprint(f.Guests, " guests fit")
	if f.Guests == 1 {
		said = "1 guest fits"
	}
	if f.Decided {
		said += ", sure at 95 %"
	} else {
		said += ", which the runs do not decide"
	}
	if f.RanOut == "" {
		return said + "; more were not tried"
	}
	return said + "; what runs out first is " + words.Plain(f.RanOut) + ": " + words.Plain(words.Message(f.Why))
}

// amount is the number of guests that fit, ahead of the metric's mean.
func amount(r *data.Row, mean string) string {
	g := guests(r)
	if g == nil {
		return mean
	}
	return words.Caption(g.Metric.Name) + ": " + words.Measured(g.Mean, g.Low, g.High, g.Metric.Unit) + "; " + mean
}

// nouns are one guest and several of each platform.
var nouns = map[string][2]string{
	notebook.BM: {"process", "processes"}, notebook.CN: {"container", "containers"},
	notebook.VM: {"VM", "VMs"}, notebook.VMCN: {"container in a VM", "containers in VMs"},
}

// finding says how many guests fit, and what runs out first: "About 11 containers of 1 CPU, 256 MB fit on this host (Docker, CPU quota):
// CPU runs out first."
func (c config) finding(at words.Unranked) (all []string) {
	var emulated []string
	for _, r := range at.Rows {
		f, is := r.Of.(*fits)
		switch {
		case !is || r.Treatment.AA || r.Unreliable():
		case !r.Representative:
			said := c.fitting(f, r, at)
			if f.busy() {
				said += " VMs under KVM need far less CPU time, so the number of busy ones does not hold for them."
			}
			emulated = append(emulated, said)
		default:
			all = append(all, c.fitting(f, r, at))
		}
	}
	if all == nil {
		return emulated
	}
	return all
}

// busy is whether what ran out is what busy guests use.
func (f *fits) busy() bool {
	return slices.Contains(f.ranOut, kind.OutOfCPU) || slices.Contains(f.ranOut, kind.OutOfIO)
}

// held is how many guests the host's memory holds if each uses all of its memory; 0: that is not known, or not the limit.
func held(f *fits, t notebook.Treatment) int {
	if t.Platform == notebook.BM || t.Instance.Memory <= 0 || t.Provisioning == notebook.Whole {
		return 0
	}
	return int(f.left / t.Instance.Memory)
}

// fitting is the finding of one environment.
func (c config) fitting(f *fits, r *data.Row, at words.Unranked) string {
	t, noun := r.Treatment, nouns[r.Treatment.Platform]
	if !r.Representative {
		noun = [2]string{"emulated " + noun[0], "emulated " + noun[1]}
	}
	full, busy := held(f, t), ""
	if slices.Contains(f.ranOut, kind.OutOfMemory) {
		full = 0
	}
	if f.busy() {
		busy = "busy "
	}
	count := func(n int, busy string) string {
		if n == 1 {
			return "1 " + busy + noun[0] + " of " + words.Size(t.Instance) + " fits on " + at.Host
		}
		return fmt.Sprint(n, " ", busy, noun[1], " of ", words.Size(t.Instance), " fit on ", at.Host)
	}
	found, about := count(f.most, busy), "about "
	open := ""
	if f.least < f.most {
		found = fmt.Sprint(f.least, " to ", found)
	}
	if f.decided {
		about = ""
	}
	if f.open() {
		open = " The runs are too few to be sure of this number at 95 %: a longer --time-budget may be enough."
	}
	in := " (" + at.Named(r) + ")"
	first := "nothing ran out, and Tare tried no more"
	if f.ranOut != nil {
		first = words.Plain(strings.Join(f.ranOut, " or ")) + " runs out first"
	}
	limit := c.limit(f, at.Work)
	if f.ranOut == nil || slices.Contains(f.ranOut, kind.OutOfEngine) || slices.Contains(f.ranOut, kind.OutOfProcesses) {
		limit = ""
	}
	switch {
	case full == 0:
		return words.Capital(about+found) + in + ": " + first + "." + limit + open
	case full < f.least:
		return words.Capital("about "+count(full, "")) + in + ": memory runs out first, if each uses all of its memory. With the memory that " + at.Work + " uses, " + about + found + ": " + first + "." + limit + open
	case busy == "" || full <= f.most:
		return words.Capital(about+found) + in + ": " + first + "." + limit + fmt.Sprintf(" If each used all of its memory, about %d would fit into the host's memory.", full) + open
	}
	return words.Capital(about+found) + in + ": " + first + "." + limit + open + fmt.Sprintf(" About %d that mostly wait fit: memory runs out first, if each uses all of its memory.", full)
}

// limit says how the metric compares with the objective with as many guests as fit, and with one more.
func (c config) limit(f *fits, work string) string {
	metric := words.Plain(c.of.Metric)
	over, tried := f.tails[f.most+1]
	if !tried {
		return fmt.Sprintf(" With more, the %s of %s is at least %g times its value without neighbours.", metric, work, c.of.Factor)
	}
	var said []string
	is, of := fmt.Sprintf(" running, the %s of %s is", metric, work), " its value without neighbours"
	say := func(n int, ratio span) {
		said = append(said, fmt.Sprintf("with %d%s %s times%s", n, is, ratio.beside(c.of.Factor), of))
		is, of = " it is", ""
	}
	for _, n := range slices.Compact([]int{f.least, f.most}) {
		if ratio, has := f.tails[n]; has {
			say(n, ratio)
		}
	}
	say(f.most+1, over)
	text := " " + words.Capital(said[0]) + "."
	if rest := said[1:]; len(rest) > 0 {
		text += " " + words.Capital(strings.Join(rest, ", and ")) + "."
	}
	return text + fmt.Sprintf(" The limit is %g times.", c.of.Factor)
}

// beside writes the span to stand beside a limit: "1.6 to 1.8", or one number where both ends look alike. An end that looks like the limit has another
// digit.
func (s span) beside(limit float64) string {
	d := 2
	if l := words.Digits(limit, 2); words.Digits(s.least, d) == l || words.Digits(s.most, d) == l {
		d = 3
	}
	least, most := words.Digits(s.least, d), words.Digits(s.most, d)
	if least == most {
		return least
	}
	return least + " to " + most
}
