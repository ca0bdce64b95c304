package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tare/desk/claims"
	"tare/desk/words"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/studies"
	"tare/workloads"
)

// studyCommand lists, shows and checks studies.
func studyCommand() *cobra.Command {
	c := &cobra.Command{Use: "study", Short: "List and show the shipped studies, and check your own",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q; must be list, show or check", args[0], c.CommandPath())
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  tare study list\n  tare study show quick >mine.yaml\n  tare study check ./mine.yaml"}
	c.AddCommand(studyListCommand(), studyShowCommand(), studyCheckCommand())
	return c
}

func studyShowCommand() *cobra.Command {
	return &cobra.Command{Use: "show NAME", Short: "Print the file of a shipped study, to copy and change", Example: "  tare study show quick >mine.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("study show: name one study (tare study list)")
			}
			s, err := studyfile.Load(studies.FS, args[0], session.Known)
			if err == nil {
				fmt.Print(s.Source)
			}
			return err
		}}
}

// checkedStudy is a study file without an error, for JSON.
type checkedStudy struct {
	Name           string `json:"name"`
	Configurations int    `json:"configurations"`
	Workloads      int    `json:"workloads"`
	Floor          int    `json:"rounds_floor"`
	Cap            int    `json:"rounds_cap"`
}

func studyCheckCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "check STUDY|FILE", Short: "Check a study file without running it",
		Long: `Reads a study file with its workloads, kernels and claims, as tare run does before it measures. The first error ends the check
with status 1. The check needs no root and ignores the host: tare run --plan says what this host can run.`,
		Example: "  tare study check ./mine.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("study check: name one study file, or a shipped study")
			}
			s, err := studyfile.Load(studies.FS, args[0], session.Known)
			if err != nil {
				return err
			}
			checked, err := checkStudy(s)
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(os.Stdout, checked)
			}
			fmt.Fprintln(os.Stdout, words.StudyOK(args[0], checked.Configurations, checked.Workloads, checked.Floor, checked.Cap))
			return nil
		}}
	tableOrJSON(c, &format)
	return c
}

// checkStudy reports the errors in a study that can be found without a host.
func checkStudy(s *studyfile.Spec) (of checkedStudy, err error) {
	if _, err := publishedOf(s); err != nil {
		return of, err
	}
	asked, err := s.Ask(workloads.FS, studyfile.Choices{Accel: "auto"})
	if err != nil {
		return of, err
	}
	names := map[string]bool{}
	for _, w := range asked.Works {
		names[w.Workload.Name] = true
	}
	n, err := asked.Count()
	return checkedStudy{s.Name, n, len(names), asked.Design.Floor, asked.Design.Cap}, err
}

// publishedOf reads the published claims that the study names.
func publishedOf(s *studyfile.Spec) (all []claims.Claim, err error) {
	for _, name := range s.Claims {
		of, err := claims.Shipped(name)
		if err != nil {
			return nil, fmt.Errorf("study %s: claims: %w", s.Name, err)
		}
		all = append(all, of...)
	}
	return all, nil
}

// listedStudy is what people need to know to choose a shipped study.
type listedStudy struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Paper string `json:"paper"`

	Seconds notebook.Span `json:"seconds"`      // estimated, on a host that has everything the study needs
	Unknown notebook.Span `json:"unknown_runs"` // number of runs whose time is unknown
	Needs   words.Needs   `json:"needs"`
}

func studyListCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "list", Short: "List the shipped studies, with their time and needs", Args: nothing, Example: "  tare study list",
		RunE: func(c *cobra.Command, _ []string) error {
			var rows []listedStudy
			for _, name := range studyfile.Shipped(studies.FS) {
				row, err := listed(c.Context(), name)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			if format == "json" {
				return writeJSON(os.Stdout, rows)
			}
			return listStudies(os.Stdout, rows, screen(os.Stdout).Width)
		}}
	tableOrJSON(c, &format)
	return c
}

func listed(ctx context.Context, name string) (row listedStudy, err error) {
	s, err := studyfile.Load(studies.FS, name, session.Known)
	if err != nil {
		return row, err
	}
	asked, err := s.Ask(workloads.FS, studyfile.Choices{Accel: "auto"})
	if err != nil {
		return row, err
	}
	v, err := session.Usual(ctx, asked)
	if err != nil {
		return row, err
	}
	n := words.Needs{Root: true, DiskGB: math.Ceil(v.Disk.High / 1e9)}
	for i, t := range v.Treatments {
		cores, memory := max(t.Instance.Cores, float64(t.HostCores)), float64(t.Instance.Memory)/(1<<30)
		if i == 0 {
			n.CPUs, n.RAM = notebook.Span{Low: cores, High: cores}, notebook.Span{Low: memory, High: memory}
		}
		if t.Instance.Name != notebook.HostSize {
			n.CPUs = notebook.Span{Low: min(n.CPUs.Low, cores), High: max(n.CPUs.High, cores)}
			n.RAM = notebook.Span{Low: min(n.RAM.Low, memory), High: max(n.RAM.High, memory)}
		}
		n.VMs = n.VMs || notebook.HasMachine(t.Platform)
		n.GPU = n.GPU || notebook.FactorDevices.Of(t) != ""
	}
	n.Emulates = s.AllowEmulation
	return listedStudy{s.Name, s.Title, s.Paper, v.Seconds, v.More, n}, nil
}

// briefly says how long a study takes. A plus stands for runs whose time is unknown.
func briefly(r listedStudy) string {
	if r.Unknown.High > 0 {
		return words.TimeBriefly(r.Seconds) + " +"
	}
	return words.TimeBriefly(r.Seconds)
}

func listStudies(out io.Writer, rows []listedStudy, width int) error {
	if width < 80 {
		width = 100
	}
	name, time, needs := 0, 0, 0 // widths
	for _, r := range rows {
		name, time, needs = max(name, len(r.Name)), max(time, len([]rune(briefly(r)))), max(needs, len([]rune(r.Needs.Text())))
	}
	for _, r := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %-*s  ", name, r.Name, time, briefly(r), needs, r.Needs.Text())
		if left := width - len([]rune(line)); left > 12 {
			line += shortened(r.Title, left)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(wrapped(words.StudiesNote, width), "\n"))
	return err
}
