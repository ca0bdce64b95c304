package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/desk/words"
	"tare/lab/session"
	"tare/notebook"
)

// planned is a plan in JSON.
type planned struct {
	notebook.Preview
	LeftOut   []omission `json:"left_out"`
	Claims    int        `json:"claims"`           // how many the study names
	Decidable []string   `json:"decidable_claims"` // names of those that this host can decide
}

type omission struct {
	Configuration notebook.Treatment `json:"configuration"`
	Reason        string             `json:"reason"`
}

// showPlan prints what a run would do, and starts nothing.
func (r *running) showPlan(ctx context.Context, q session.Request, published []claims.Claim) error {
	v, err := session.Foresee(ctx, q)
	if err != nil {
		return err
	}
	can, err := decidable(v, published)
	if err != nil {
		return err
	}
	if r.format == "json" {
		p := planned{Preview: v.Preview, LeftOut: []omission{}, Claims: len(published), Decidable: []string{}}
		for _, l := range v.LeftOut {
			p.LeftOut = append(p.LeftOut, omission{l.Treatment, words.Message(l.Reason)})
		}
		for _, c := range can {
			p.Decidable = append(p.Decidable, c.ID)
		}
		return writeJSON(os.Stdout, p)
	}
	on := ""
	if r.recorded != nil {
		on = fmt.Sprintf("for the host of %s: %s, %s, %d GB", r.host, cmp.Or(v.Host.Hostname, "without a name"), words.Count(len(v.Host.CPUs), "CPU"), v.Host.Memory>>30)
	}
	return printPlan(os.Stdout, v.Preview, on, len(can), len(published), screen(os.Stdout).Width)
}

// printPlan prints a plan. on is the host that it is for; "": this one.
func printPlan(out io.Writer, v notebook.Preview, on string, can, all, width int) error {
	title := "Plan of " + v.Study
	if v.Title != "" {
		title += ": " + v.Title
	}
	fmt.Fprintln(out, plain(title))
	if on != "" {
		fmt.Fprintln(out, plain(on))
	}
	fmt.Fprintln(out)
	const label = 16
	if width < 60 {
		width = 100
	}
	w := tabwriter.NewWriter(out, label, 0, 2, ' ', 0)
	for _, line := range words.Planned(v, can, all) {
		for i, part := range wrapped(plain(line[1]), width-label-1) {
			if i > 0 {
				line[0], part = "", "  "+part
			}
			fmt.Fprintf(w, "%s\t%s\n", line[0], part)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nNothing was started.")
	return err
}

// decidable are the claims that a run of the plan can decide on this host.
func decidable(v session.Preview, published []claims.Claim) (can []claims.Claim, err error) {
	if len(published) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "tare-plan-") // claims are judged from a folder, so make one with the study and no trials
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := notebook.Create(dir, v.Plan, v.Host)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All, Baseline: bareMetal})
	if err != nil {
		return nil, err
	}
	for i, verdict := range claims.Judge(s, published) {
		if len(verdict.Waits) > 0 {
			can = append(can, published[i])
		}
	}
	return can, nil
}
