package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// progress shows the progress of a run: on a terminal one line that it rewrites, elsewhere a line for each round. It draws only
// when a guest or a trial begins or ends, so that it never wakes up during a measurement.
type progress struct {
	w     *os.File
	tty   bool
	width int

	silent bool // print warnings only

	round     int
	done, all int
	left      string
	treatment notebook.Treatment
	ratios    map[string]string // the latest, by treatment
	drawn     bool
	failures  map[string]bool
	said      map[string]bool // what Say has printed
}

func newProgress(w *os.File) *progress {
	width, _, err := term.GetSize(int(w.Fd()))
	return &progress{w: w, tty: err == nil && os.Getenv("TERM") != "dumb", width: width, round: -1, failures: map[string]bool{}, ratios: map[string]string{}, said: map[string]bool{}}
}

// silentProgress shows warnings only.
func silentProgress(w *os.File) *progress {
	return &progress{w: w, silent: true, failures: map[string]bool{}, ratios: map[string]string{}, said: map[string]bool{}}
}

// Say implements session.Show: it names the long work under way before the rounds begin. On a terminal the next text replaces it.
func (p *progress) Say(what string) {
	if !p.tty {
		if !p.said[what] { // a program is compiled once for each of its uses
			p.said[what] = true
			p.tell(what)
		}
		return
	}
	p.line(what + " …")
}

// tell prints a line that is not a warning.
func (p *progress) tell(text string) {
	if !p.silent {
		p.note(text)
	}
}

// note prints a line that stays. Guests can influence the text, so plain removes terminal commands from it.
func (p *progress) note(text string) {
	p.wipe()
	fmt.Fprintln(p.w, plain(text))
}

// plain is the text on one line, with a question mark for each unprintable character.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// end removes the bar.
func (p *progress) end() { p.wipe() }

// Planned implements session.Show.
func (p *progress) Planned(left []notebook.LeftOut, untraced map[string]string) {
	for _, line := range slices.Concat(leftOut(left), notTraced(untraced)) {
		p.tell(line)
	}
}

// Begins implements session.Show.
func (p *progress) Begins(v notebook.Preview) {
	for _, line := range words.Beginning(v) {
		p.tell(line)
	}
}

// leftOut names the treatments that are left out, a line for each reason.
func leftOut(all []notebook.LeftOut) (lines []string) {
	for _, of := range data.Together(all, func(a, b notebook.LeftOut) bool { return a.Reason.Equal(b.Reason) }) {
		line := "left out: " + of[0].Treatment.ID
		if more := len(of) - 1; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, line+": "+words.Message(of[0].Reason))
	}
	return lines
}

// notTraced names the tracers that do not work on this host, a line for each reason.
func notTraced(untraced map[string]string) (lines []string) {
	names := slices.DeleteFunc(slices.Clone(notebook.TracerNames), func(name string) bool { return untraced[name] == "" })
	for _, of := range data.Together(names, func(a, b string) bool { return untraced[a] == untraced[b] }) {
		lines = append(lines, "not traced: "+strings.Join(of, ", ")+": "+untraced[of[0]])
	}
	return lines
}

// Short implements session.Show.
func (p *progress) Short(what *notebook.Message) { p.note("noise: " + words.Message(what)) }

// TunedHost implements session.Show.
func (p *progress) TunedHost(set []notebook.Setting, left []string) {
	if len(set) == 0 {
		p.tell("tuned host: nothing to change on this host (tare doctor --noise)")
	}
	for _, text := range notebook.Said(set) {
		p.tell("tuned host, until the run ends: " + text)
	}
	for _, text := range left {
		p.note("left as it is: " + text)
	}
}

// Guest implements study.Watcher.
func (p *progress) Guest(round int, t notebook.Treatment, done, all int, atMost bool, left time.Duration) {
	most, of := "", fmt.Sprintf(" of %d", all)
	if atMost { // its limit says little about where the run ends
		most, of = "at most ", ""
	}
	text := ""
	if left > 0 {
		text = ", " + most + "about " + left.Round(time.Second).String() + " left"
	}
	if round != p.round && !p.tty && !p.silent {
		fmt.Fprintf(p.w, "round %d: %d%s environments done%s\n", round+1, done, of, text)
	}
	p.round, p.done, p.all, p.left, p.treatment = round, done, all, text, t
	p.draw()
}

// Trial implements study.Watcher.
func (p *progress) Trial(t notebook.Treatment, tr notebook.Trial, q stats.Quotient) {
	if cause := words.Message(tr.Failure); cause != "" && !p.failures[t.ID+cause] { // report each cause once
		p.failures[t.ID+cause] = true
		which := ""
		if tr.Traced {
			which = ", traced"
		}
		p.note(fmt.Sprintf("failed: %s, round %d%s: %s", t.ID, tr.Round+1, which, cause))
	}
	if q.HasInterval() {
		p.ratios[t.ID] = fmt.Sprintf("ratio %.3g (%.3g to %.3g)", q.Value, q.Low, q.High)
	}
	p.treatment = t // guests take turns, so the treatment changes
	p.draw()
}

// Preparing implements study.Watcher.
func (p *progress) Preparing(what *notebook.Message) {
	p.note("mostly preparation: " + words.Message(what))
}

// GaveUp implements study.Watcher.
func (p *progress) GaveUp(t notebook.Treatment, cause *notebook.Message) {
	p.note(fmt.Sprintf("given up: %s: every trial failed: %s", t.ID, words.Message(cause)))
}

func (p *progress) draw() {
	if !p.tty {
		return
	}
	const cells = 16
	full := 0
	if p.all > 0 {
		full = min(cells, cells*p.done/p.all)
	}
	line := fmt.Sprintf("[%s%s] round %d%s  %s, %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), p.round+1,
		p.left, words.Short(p.treatment, true), p.treatment.Instance.Name)
	if r := p.ratios[p.treatment.ID]; r != "" {
		line += "  " + r
	}
	p.line(line)
}

// line writes a line that the next line or wipe replaces.
func (p *progress) line(line string) {
	if r := []rune(line); p.width > 0 && len(r) >= p.width {
		line = string(r[:p.width-1])
	}
	fmt.Fprint(p.w, "\r\x1b[K", line)
	p.drawn = true
}
