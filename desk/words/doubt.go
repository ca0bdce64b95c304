package words

import (
	"fmt"
	"strings"

	"tare/desk/data"
)

// Doubts turns doubts into sentences, each once, in their order.
func Doubts[D data.Doubt](all []D) []string {
	return once(all, func(d D) string { return Doubt(d) })
}

// once says all that there is, each text once.
func once[T any](all []T, say func(T) string) (texts []string) {
	said := map[string]bool{}
	for _, it := range all {
		if t := say(it); !said[t] {
			said[t] = true
			texts = append(texts, t)
		}
	}
	return texts
}

// Doubt says a doubt in a clause that begins small and has no stop.
func Doubt(d data.Doubt) string {
	switch d := d.(type) {
	case data.Emulated:
		return "ran under software emulation (tcg), which does not represent a VM's cost"
	case data.Omitted:
		return "left out: " + d.Reason
	case data.NotMeasured:
		return "not measured yet"
	case data.TrialsFailed:
		return Failures(d)
	case data.OneRound:
		return "no interval: one round only, at least two are needed"
	case data.UnsteadyHost:
		return "the A/A check excludes 1: the host was too unsteady, or this is the one run in 20 in which it happens by chance"
	case data.WithinUnsteadiness:
		return "not to be trusted: bare metal differed from itself by as much, " + Interval(d.Ratio, d.Low, d.High)
	case data.NoBareMetal:
		return "no ratio: bare metal was not measured at " + d.Instance
	case data.BaselineFailed:
		return "no ratio: no trial of " + Name(d.Baseline) + " succeeded"
	case data.NoCommonRound:
		return "no ratio: no round has both this and " + Name(d.Baseline)
	case data.OneCommonRound:
		return "the ratio has no interval: only one round has both this and " + Name(d.Baseline)
	case data.BaselineZero:
		return "no ratio: the mean of " + Name(d.Baseline) + " is zero"
	case data.Unbounded:
		return "the ratio's interval is unbounded: " + Name(d.Baseline) + " varied too much"
	case data.UnpairedRounds:
		return fmt.Sprintf("%s counted in the ratio: in %d more, only this or only %s has a successful trial", was(d.Paired, "round"), d.Unpaired, Name(d.Baseline))
	case data.Overflow:
		return "the mean is too large to be represented"
	case data.GuestSaid:
		return Text(d.Text)
	case data.WarmupFailed:
		return "a warm-up failed: " + Text(d.Cause)
	case data.TracedFailed:
		return "a traced trial failed: " + Text(d.Cause)
	case data.KernelChanged:
		return fmt.Sprintf("%s was measured on the host %s under the kernel %s, an earlier folder under %s: rows that they share mix the two", d.Dir, d.Host, d.Kernel, d.Earlier)
	case data.HostIsGuest:
		return fmt.Sprintf("the host %s is itself a virtual machine (%s): bare metal here means this machine without a further layer", d.Host, d.Hypervisor)
	case data.Looks:
		return fmt.Sprintf("intervals keep 95 %% coverage in spite of the stopping rule: each of %d looks uses a %.4g %% interval", d.Looks, 100*d.Level)
	case data.FewRounds:
		run := "were run"
		if d.Begun {
			run = "were begun, the last of them incomplete"
		}
		return fmt.Sprintf("%s: %d of at least %s %s; %s", d.Dir, d.Rounds, Count(d.Floor, "round"), run, Ended(d.Ended))
	case data.Torn:
		return d.Dir + ": its last record was cut off and does not count; the same `tare run` repeats that trial"
	case data.FoldersShare:
		return "where rounds of several folders share a row, its intervals are wider: any of all their looks together may have been the last"
	case data.MoreWarnings:
		return fmt.Sprintf("%d further warnings are of more kinds than are listed", d.Count)
	}
	for _, of := range []func(data.Doubt) string{accountDoubt, modelDoubt, adviceDoubt, claimDoubt} {
		if t := of(d); t != "" {
			return t
		}
	}
	panic(fmt.Sprintf("words: no sentence for the doubt %T", d)) // a doubt without words is a mistake that every test of it finds
}

// mostFootnote is how many characters a footnote has room for: what is longer the report says.
const mostFootnote = 100

// Footnote says a doubt in a few words, for a table in a terminal.
func Footnote(d data.Doubt) string {
	t := Doubt(d)
	switch d.(type) {
	case data.Emulated:
		return "emulated (tcg): not a VM's cost"
	case data.UnsteadyHost:
		return "the A/A check excludes 1"
	}
	if r := []rune(t); len(r) > mostFootnote {
		cut := strings.LastIndexByte(string(r[:mostFootnote]), ' ')
		return string(r[:mostFootnote])[:max(cut, mostFootnote/2)] + " …"
	}
	return t
}

// Ended says how the last session of a folder ended.
func Ended(e data.End) string {
	switch {
	case !e.Recorded:
		return "no session is recorded"
	case e.Open:
		return "its last session is still running or was killed"
	}
	return "its last session ended: " + e.Reason
}

// Text says what was recorded in words.
func Text(t data.Text) string {
	if t.Differs {
		return t.First + " (the numbers differ)"
	}
	return t.First
}

// Failures says how many trials failed, and why.
func Failures(f data.TrialsFailed) string {
	if f.Failed == f.Trials {
		return "every trial failed: " + cause(f.Cause)
	}
	return fmt.Sprintf("%d of %d trials failed: %s", f.Failed, f.Trials, cause(f.Cause))
}

func cause(c data.Cause) string {
	switch {
	case c.Times == 0:
		return "no cause is recorded"
	case c.Alone:
		return Text(c.Text)
	}
	return fmt.Sprintf("%s (%d times, the most common cause)", Text(c.Text), c.Times)
}
