package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Verdicts counts verdicts, and says how they were corrected.
func Verdicts(vs []claims.Verdict) string {
	if len(vs) == 0 {
		return "There are no claims."
	}
	count := map[claims.Answer]int{}
	tested := 0
	for _, v := range vs {
		count[v.Answer]++
		if v.Tested {
			tested++
		}
	}
	var parts []string
	for _, a := range claims.Answers {
		parts = append(parts, fmt.Sprintf("%d %s", count[a], answers(a, count[a])))
	}
	s := fmt.Sprintf("Of %s, %s.", Count(len(vs), "claim"), List(parts))
	if tested > 0 {
		s += fmt.Sprintf(" Corrected for testing %s together: at most %.0f %% of runs have any wrong \"holds\" or \"does not hold\", if the means of rounds are normally distributed.", Count(tested, "claim"), 100*stats.Alpha)
	}
	return s
}

// NoClaims says that no claim is about what was measured, and which studies have claims.
func NoClaims(studies []string) []string {
	return []string{
		"No published claim is about these results.",
		"Studies with claims: " + strings.Join(studies, ", ") + ".",
	}
}

// answers is an answer behind a count: "3 hold here".
func answers(a claims.Answer, n int) string {
	many := map[claims.Answer]string{claims.Holds: "hold here", claims.DoesNotHold: "do not hold here", claims.NotDecided: "are not decided", claims.NotTestable: "are not testable here"}
	one := map[claims.Answer]string{claims.Holds: "holds here", claims.DoesNotHold: "does not hold here", claims.NotDecided: "is not decided", claims.NotTestable: "is not testable here"}
	if n == 1 {
		return one[a]
	}
	return many[a]
}

// Published writes a claim's published number, "2.4, ratio to a vanilla VM"; empty where it has none.
func Published(c claims.Claim) string {
	p := c.Published
	switch {
	case p == nil:
		return ""
	case p.Low == p.High:
		return fmt.Sprintf("%g, %s", p.Low, p.What)
	}
	return fmt.Sprintf("%g to %g, %s", p.Low, p.High, p.What)
}

// Verdict says in a line why a verdict is as it is: the evidence in brief, how many rounds would decide, what is missing.
func Verdict(v *claims.Verdict) string {
	if v.Answer == claims.NotTestable {
		var parts []string
		for _, r := range reasons(v.Missing) {
			parts = append(parts, r.text())
		}
		return strings.Join(parts, "; ")
	}
	e := v.Evidence[v.Deciding]
	s := fmt.Sprintf("%s: %s, wanted %s", Comparison(e.Comparison), Found(v), Region(e.Wanted))
	if n := len(v.Evidence); n > 1 && v.Answer != claims.NotDecided {
		s += fmt.Sprintf(" (%d of %d comparisons)", v.Alike, n)
	}
	if v.Answer == claims.NotDecided {
		s += "; " + Outlook(v)
	}
	if chr := shares(v); chr != "" {
		s += "; " + chr
	}
	if e.Emulated {
		s += "; " + underEmulation
	}
	if hosts := twoHosts(e.Comparison); hosts != "" {
		s += "; " + hosts
	}
	return s
}

// twoHosts says what else may explain the result of a comparison across hosts; empty for other comparisons.
func twoHosts(c claims.Comparison) string {
	if !c.AcrossHosts() {
		return ""
	}
	said := "compares two machines, which may also differ in sockets, caches and memory"
	if len(c.Unlike) > 0 {
		said += ", and do differ in " + Traits(c.Unlike)
	}
	return said
}

// underEmulation says why an emulated VM decides a claim.
const underEmulation = "the VM was emulated, which does not change the guest's own memory"

// Found writes the number that a verdict rests on: "0.66 (0.59 to 0.75)"; empty where nothing was compared.
func Found(v *claims.Verdict) string {
	if v.Deciding < 0 {
		return ""
	}
	e := v.Evidence[v.Deciding]
	if e.Comparison.Over.By != claims.ByRatio {
		return Measured(e.Estimate, e.Low, e.High, e.Unit)
	}
	return Interval(e.Estimate, e.Low, e.High)
}

// Outlook says of what is not decided about how many more rounds would decide it, or why nobody can tell.
func Outlook(v *claims.Verdict) string {
	switch e := v.Evidence[v.Deciding]; {
	case v.More > 0:
		return fmt.Sprintf("about %s would decide (%d now)", MoreRounds(v.More), e.Rounds)
	case e.Rounds < 2:
		return "at least two rounds are needed"
	case !stats.Finite(e.Low) || !stats.Finite(e.High):
		return fmt.Sprintf("no estimate of the rounds that would decide (%d now): the interval has no bounds yet", e.Rounds)
	default:
		return fmt.Sprintf("more than %d rounds would decide (%d now): the value is close to the bound, or the noise is large", stats.MostRounds, e.Rounds)
	}
}

// shares names the containers' share of the host next to the paper's; empty where the finding is not about it.
func shares(v *claims.Verdict) string {
	switch paper := v.Claim.PaperCHR; {
	case paper == 0 || v.CHRHigh == 0:
		return ""
	case v.CHRLow == v.CHRHigh:
		return fmt.Sprintf("at a CHR of %.2g, the paper's is %.2g", v.CHRLow, paper)
	default:
		return fmt.Sprintf("at a CHR of %.2g to %.2g, the paper's is %.2g", v.CHRLow, v.CHRHigh, paper)
	}
}

// Beside is what a verdict's number does not say: that its CHR is not the paper's, that it compares two hosts, that trials failed, or why no number of
// rounds is known.
func Beside(v *claims.Verdict) (all []string) {
	if v.Deciding < 0 {
		return nil
	}
	if chr := shares(v); chr != "" {
		all = append(all, chr)
	}
	if v.Evidence[v.Deciding].Emulated {
		all = append(all, underEmulation)
	}
	if hosts := twoHosts(v.Evidence[v.Deciding].Comparison); hosts != "" {
		all = append(all, hosts)
	}
	for _, f := range v.Evidence[v.Deciding].Comparison.Failed {
		all = append(all, fmt.Sprintf("%d of %s of %s failed and do not count", f.Failed, Count(f.Trials, "trial"), Claimed(f.Treatment)))
	}
	if v.Answer == claims.NotDecided && v.More == 0 {
		all = append(all, Outlook(v))
	}
	return all
}

// Untestable are claims that cannot be tested for one reason.
type Untestable struct {
	Reason string
	Claims []string // their ids
	More   int      // of them, that cannot be for other reasons too
}

// Untestables brings together what is not testable, each claim under that of its reasons that most others share, the commonest reason first.
func Untestables(vs []claims.Verdict) (all []Untestable) {
	reasons := map[string][]string{} // by claim
	for _, v := range vs {
		if v.Answer == claims.NotTestable {
			for _, g := range v.Missing {
				why, _ := split(g)
				reasons[v.Claim.ID] = append(reasons[v.Claim.ID], why)
			}
			reasons[v.Claim.ID] = data.Distinct(reasons[v.Claim.ID], func(s string) string { return s })
		}
	}
	for len(reasons) > 0 {
		count, best := map[string]int{}, ""
		for _, v := range vs { // in their order, so that of equal ones the first is taken
			for _, why := range reasons[v.Claim.ID] {
				if count[why]++; count[why] > count[best] {
					best = why
				}
			}
		}
		u := Untestable{Reason: best}
		for _, v := range vs {
			if slices.Contains(reasons[v.Claim.ID], best) {
				u.Claims = append(u.Claims, v.Claim.ID)
				u.More += min(len(reasons[v.Claim.ID])-1, 1)
				delete(reasons, v.Claim.ID)
			}
		}
		all = append(all, u)
	}
	return all
}

// UntestableClaims says how many claims cannot be tested for a reason.
func UntestableClaims(u Untestable) string {
	said := Count(len(u.Claims), "claim")
	if u.More > 0 {
		said += fmt.Sprintf(" (%d of them for other reasons too)", u.More)
	}
	return said + ": " + u.Reason
}

// Claimed names a treatment of a comparison in the words of a claim's selectors: "cn docker vanilla". What is compared was not emulated.
func Claimed(t notebook.Treatment) string {
	parts := []string{t.Platform, t.Engine, t.Provisioning}
	if t.Platform == notebook.VM && t.Engine == "qemu" {
		parts[1] = "" // it is the usual one
	}
	if t.Kernel != "" {
		parts = append(parts, "kernel", t.Kernel)
	}
	if t.Network != "" {
		parts = append(parts, "network", t.Network)
	}
	switch t.Isolation {
	case "", notebook.IsolationFull:
		parts = append(parts, t.Isolation)
	default:
		parts = append(parts, strings.TrimPrefix(isolation(t.Isolation), "layers "))
	}
	if t.Machine != "" {
		parts = append(parts, "with", t.Machine)
	}
	return Plain(join(" ", parts))
}

// Comparison says what is compared: "cn docker vanilla / bm, ffmpeg at large".
func Comparison(c claims.Comparison) string { return say(c) }

// Quantity says what is compared: "migrations per run time"; empty for a workload's own metric.
func Quantity(q data.Quantity) string {
	names := func(all []string) string {
		var said []string
		for i, name := range all {
			if slices.Contains(all[:i], name) {
				continue
			}
			times := 0
			for _, other := range all {
				if other == name {
					times++
				}
			}
			family, name, _ := strings.Cut(name, ".")
			caption := Caption(name)
			if family != "secondary" || caption == name {
				caption = spelled(name)
			}
			if times > 1 {
				caption = fmt.Sprintf("%d × %s", times, caption)
			}
			said = append(said, caption)
		}
		return strings.Join(said, " + ")
	}
	switch {
	case q.Own():
		return ""
	case len(q.Per) == 0:
		return names(q.Of)
	}
	return names(q.Of) + " per " + names(q.Per)
}

// spelled is the name of a metric that has no caption: "run time" for run_s.
func spelled(name string) string {
	if seconds, is := strings.CutSuffix(name, "_s"); is {
		name = seconds + " time"
	}
	return strings.NewReplacer("_rss_mb", " RSS", "_", " ", "cpu", "CPU").Replace(name)
}

// Region says which values a hypothesis allows: "at least 1.02".
func Region(r claims.Region) string {
	figure := func(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }
	switch {
	case math.IsInf(r.High, 1):
		return "at least " + figure(r.Low)
	case math.IsInf(r.Low, -1):
		return "at most " + figure(r.High)
	}
	return "from " + figure(r.Low) + " to " + figure(r.High)
}

// Wanted is Region in signs: "≥ 1.02".
func Wanted(r claims.Region) string {
	return strings.NewReplacer("at least ", "≥ ", "at most ", "≤ ", "from ", "", " to ", "–").Replace(Region(r))
}

// Selector says which treatments are chosen.
func Selector(s claims.Selector) string { return cmp.Or(strings.TrimSpace(say(s)), "anything") }

// Selectors says which treatments are chosen, each once.
func Selectors(all []claims.Selector) []string { return data.Distinct(all, Selector) }

// Gap says a comparison that cannot be made, and why.
func Gap(g claims.Gap) string {
	if g.LeftOut == nil {
		return Doubt(g.Reason)
	}
	return Claimed(*g.LeftOut) + " was " + Doubt(g.Reason)
}

// Gaps says gaps, each once.
func Gaps(all []claims.Gap) []string { return data.Distinct(all, Gap) }

// Piece is a part of a verdict's reason.
type Piece struct {
	Text string
	Note int // the number of the note that it goes on with, which several verdicts have in common; 0: none
}

// Reason is why a verdict is as it is, and what is missing, in pieces.
type Reason struct{ Why, Missing []Piece }

// Reasons gives each verdict's reason, and the notes that they refer to by numbers from 1: what several verdicts have in
// common is one note.
func Reasons(vs []claims.Verdict) (all []Reason, notes []string) {
	said := map[string]int{} // by how many verdicts
	for _, v := range vs {
		if v.Answer == claims.NotTestable {
			for _, r := range reasons(v.Missing) {
				said[r.reason]++
			}
		}
	}
	for _, v := range vs {
		if v.Answer != claims.NotTestable || v.Missing == nil {
			all = append(all, Reason{Why: []Piece{{Text: Verdict(&v)}}})
			continue
		}
		var pieces []Piece
		for _, r := range reasons(v.Missing) {
			if r.rest || said[r.reason] < 2 {
				pieces = append(pieces, Piece{Text: r.text()})
				continue
			}
			n := slices.Index(notes, r.reason)
			if n < 0 {
				n = len(notes)
				notes = append(notes, r.reason)
			}
			p := Piece{Text: "see", Note: n + 1}
			if r.left != nil {
				p.Text = r.leftOut()
			}
			pieces = append(pieces, p)
		}
		all = append(all, Reason{Why: pieces})
	}
	for i, v := range vs {
		for _, g := range v.Missing {
			why, what := split(g)
			p := Piece{Text: Gap(g)}
			if n := slices.Index(notes, why); n >= 0 {
				p = Piece{Text: "see", Note: n + 1}
				if what != "" {
					p.Text = what + " was left out"
				}
			}
			if !slices.Contains(all[i].Missing, p) {
				all[i].Missing = append(all[i].Missing, p)
			}
		}
	}
	return all, notes
}

// reason is why comparisons cannot be made, with the treatments that were left out for it.
type reason struct {
	left   []string
	reason string
	rest   bool // it only counts further ones
}

// split gives a gap's reason, and what was left out for it; empty: nothing was.
func split(g claims.Gap) (why, what string) {
	if g.LeftOut == nil {
		return Doubt(g.Reason), ""
	}
	why = Doubt(g.Reason)
	if o, is := g.Reason.(data.Omitted); is {
		why = Message(o.Reason)
	}
	return why, Claimed(*g.LeftOut)
}

// reasons brings gaps together by their reason. Beyond a few they are counted.
func reasons(gaps []claims.Gap) (all []reason) {
	for _, g := range gaps {
		why, what := split(g)
		i := slices.IndexFunc(all, func(r reason) bool { return r.reason == why && (r.left != nil) == (what != "") })
		if i < 0 {
			i = len(all)
			all = append(all, reason{reason: why})
		}
		if what != "" && !slices.Contains(all[i].left, what) {
			all[i].left = append(all[i].left, what)
		}
	}
	const most = 2
	if more := len(all) - most; more > 0 {
		all = append(all[:most], reason{reason: fmt.Sprintf("and %d more", more), rest: true})
	}
	return all
}

// leftOut says what was, without the reason: "vm vanilla and 3 more were left out".
func (r reason) leftOut() string {
	switch n := len(r.left); n {
	case 1:
		return r.left[0] + " was left out"
	case 2:
		return strings.Join(r.left, " and ") + " were left out"
	default:
		return fmt.Sprintf("%s and %d more were left out", r.left[0], n-1)
	}
}

func (r reason) text() string {
	if r.left == nil {
		return r.reason
	}
	return r.leftOut() + ": " + r.reason
}
