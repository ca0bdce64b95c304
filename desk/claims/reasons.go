package claims

import (
	"fmt"
	"slices"
	"strings"
)

// Piece is a part of a verdict's reason.
type Piece struct {
	Text string
	Note int // the number of the note that it goes on with, which several verdicts have in common; 0: none
}

// Reason is a verdict's Why and Missing in pieces.
type Reason struct{ Why, Missing []Piece }

// Reasons gives each verdict's reason, and the notes that they refer to by numbers from 1: what several verdicts have in
// common is said once.
func Reasons(vs []Verdict) (all []Reason, notes []string) {
	said := map[string]int{} // by how many verdicts
	for _, v := range vs {
		if v.Answer == NotTestable {
			for _, r := range reasons(v.gaps) {
				said[r.reason]++
			}
		}
	}
	for _, v := range vs {
		if v.Answer != NotTestable || v.gaps == nil {
			all = append(all, Reason{Why: []Piece{{Text: v.Why}}})
			continue
		}
		var pieces []Piece
		for _, r := range reasons(v.gaps) {
			if r.rest || said[r.reason] < 2 {
				pieces = append(pieces, Piece{Text: r.String()})
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
		for _, g := range v.gaps {
			p := Piece{Text: g.String()}
			if n := slices.Index(notes, g.reason); n >= 0 {
				p = Piece{Text: "see", Note: n + 1}
				if g.what != "" {
					p.Text = g.what + " was left out"
				}
			}
			all[i].Missing = append(all[i].Missing, p)
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

// reasons brings gaps together by their reason. Beyond a few they are counted.
func reasons(gaps []gap) (all []reason) {
	for _, g := range gaps {
		i := slices.IndexFunc(all, func(r reason) bool { return r.reason == g.reason && (r.left != nil) == (g.what != "") })
		if i < 0 {
			i = len(all)
			all = append(all, reason{reason: g.reason})
		}
		if g.what != "" {
			all[i].left = append(all[i].left, g.what)
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

func (r reason) String() string {
	if r.left == nil {
		return r.reason
	}
	return r.leftOut() + ": " + r.reason
}
