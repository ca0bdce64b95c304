package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tare/lab/workload"
	"tare/notebook"
	"tare/workloads"
)

// aboutWorkload is what people need to know to choose a workload.
type aboutWorkload struct {
	Name       string           `json:"name"`
	Title      string           `json:"title"`
	Paper      string           `json:"paper,omitempty"`
	Service    bool             `json:"service"`
	Metrics    []aboutMetric    `json:"metrics"` // the first one ranks platforms
	Length     string           `json:"length,omitempty"`
	Takes      string           `json:"takes,omitempty"`
	Suite      string           `json:"suite,omitempty"`
	Packages   []string         `json:"packages,omitempty"`
	Image      string           `json:"image,omitempty"`
	Downloads  []string         `json:"downloads,omitempty"`
	Parameters []aboutParameter `json:"parameters"`
}

type aboutMetric struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Better string `json:"better"` // lower, higher or none
}

type aboutParameter struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Unit    string `json:"unit,omitempty"`
	Help    string `json:"help"`
}

func about(w *workload.Workload) aboutWorkload {
	a := aboutWorkload{
		Name: w.Name, Title: w.Title, Paper: w.Paper, Service: w.Service != nil, Length: w.Length, Takes: w.Takes,
		Suite: w.Image.Suite, Packages: w.Image.Packages, Image: w.Image.Reference, Parameters: []aboutParameter{},
	}
	if len(w.Build) > 0 {
		a.Packages = append(slices.Clone(a.Packages), "gcc", "libc6-dev")
	}
	for _, m := range slices.Concat([]notebook.Metric{w.Primary()}, w.Secondary()) {
		a.Metrics = append(a.Metrics, aboutMetric{m.Name, m.Unit, string(cmp.Or(m.Better, notebook.Lower))})
	}
	inputs := w.Inputs
	if w.Input != nil {
		inputs = append([]workload.Fetched{*w.Input}, inputs...)
	}
	for _, in := range inputs {
		if from := cmp.Or(in.PyPI, in.Maven); from != "" {
			a.Downloads = append(a.Downloads, from)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Params)) {
		p := w.Params[name]
		a.Parameters = append(a.Parameters, aboutParameter{name, p.Default, p.Values, p.Unit, p.Help})
	}
	return a
}

func workloadListCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "list", Short: "List the shipped workloads", Args: nothing, Example: "  tare workload list",
		RunE: func(*cobra.Command, []string) error {
			var all []aboutWorkload
			for _, name := range workload.Shipped(workloads.FS) {
				w, err := workload.Find(workloads.FS, name, ".")
				if err != nil {
					return err
				}
				all = append(all, about(w))
			}
			if format == "json" {
				return writeJSON(os.Stdout, all)
			}
			return listWorkloads(os.Stdout, all)
		}}
	tableOrJSON(c, &format)
	return c
}

func workloadShowCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "show NAME|FOLDER", Short: "Show a workload's parameters, metrics and needs", Example: "  tare workload show cpu\n  tare workload show ./fs-mark",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("workload show: name one workload (tare workload list), or a folder by a path with a slash")
			}
			w, err := workload.Find(workloads.FS, args[0], ".")
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(os.Stdout, about(w))
			}
			return showWorkload(os.Stdout, about(w), args[0])
		}}
	tableOrJSON(c, &format)
	return c
}

// listedWidth is the greatest width of a title in a list, in characters.
const listedWidth = 76

func listWorkloads(out io.Writer, all []aboutWorkload) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range all {
		title := a.Title
		if a.Service {
			title = "service: " + title
		}
		fmt.Fprintf(w, "%s\t%s\n", a.Name, shortened(title, listedWidth))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nParameters and metrics of a workload: tare workload show NAME")
	return err
}

func showWorkload(out io.Writer, a aboutWorkload, named string) error {
	fmt.Fprintf(out, "%s: %s\n\n", a.Name, a.Title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(label, text string) {
		if text != "" {
			for i, part := range wrapped(text, 82) {
				if i > 0 {
					label = ""
				}
				fmt.Fprintf(w, "%s\t%s\n", label, part)
			}
		}
	}
	kind := "a command that ends"
	if a.Service {
		kind = "a service that gets requests from its load"
	}
	line("kind", kind)
	line("paper", a.Paper)
	var also []string
	for i, m := range a.Metrics {
		text := m.Name + " (" + m.Unit + ", " + m.Better + " is better)"
		if m.Better == "none" {
			text = m.Name + " (" + m.Unit + ")"
		}
		if i == 0 {
			line("metric", text)
			continue
		}
		also = append(also, m.Name)
	}
	line("also", strings.Join(also, ", "))
	if a.Takes != "" {
		line("takes", "about "+a.Takes+" with the defaults, on one CPU")
	}
	line("image", a.Image)
	if a.Suite != "" {
		line("image", "Debian "+a.Suite)
	}
	line("packages", strings.Join(a.Packages, " "))
	line("downloads", strings.Join(a.Downloads, ", "))
	if err := w.Flush(); err != nil {
		return err
	}
	if len(a.Parameters) == 0 {
		_, err := fmt.Fprintln(out, "\nIt has no parameters.")
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "parameter\tdefault\tvalues")
	for _, p := range a.Parameters {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, strings.TrimSpace(p.Default+" "+p.Unit), shortened(strings.ReplaceAll(p.Values, "|", ", "), 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, p := range a.Parameters {
		help := p.Help
		if p.Name == a.Length {
			help += "; a run's time is proportional to it"
		}
		line(p.Name, help)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p := a.Parameters[0]
	_, err := fmt.Fprintf(out, "\nIn a study file:  - {name: %s, params: {%s: %q}}\n", named, p.Name, p.Default)
	return err
}

// wrapped breaks a text between words into lines of at most width characters.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// shortened cuts a text to at most most characters, between words where possible.
func shortened(text string, most int) string {
	if len([]rune(text)) <= most {
		return text
	}
	return strings.TrimRight(wrapped(text, most-1)[0], ",;:") + "…"
}
