package paging

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/paging"
	"tare/notebook/notebooktest"
)

// pagesRead is a study of four guests whose page tables and faults are known.
func pagesRead() *notebooktest.Folder {
	f := notebooktest.New(4)
	p := kind.Config{Guests: 4, Tables: true, InitialS: 1, SteadyS: 120, FaultsS: 10}
	f.Study.Name, f.Study.Kind, f.Study.Config, f.Rounds, f.Noise = "page-tables", kind.Name, &p, 4, 0
	f.Study.Also = map[string][]notebook.Metric{}
	f.Study.Metrics["web"], f.Study.Also["web"] = p.Metrics(false)
	shares := map[string]int64{}
	for _, addresses := range notebook.Addresses {
		for i, platform := range []string{"bm", "bm aa", "cn crun pinned"} {
			id := fmt.Sprintf("web addresses=%s %s large", addresses, platform)
			f.Add(id, 1)
			if shares[id] = int64(60 + i); addresses == notebook.AddressesRandom {
				shares[id] = 2
			}
		}
	}
	f.Trial = func(x *notebook.Trial) {
		n := shares[x.Treatment]
		var seen kind.Seen
		for _, state := range []string{kind.Initial, kind.Steady} {
			seen.PageTables = append(seen.PageTables, notebook.PageTables{State: state, Guests: 4, Processes: 4, Entries: 400, Groupable: 4 * n, Active: 200, ActiveGroupable: 2 * n, Elsewhere: 4 * (62 - n)})
		}
		seen.PageFaults = &notebook.PageFaults{Guests: 4, OfS: 10, CPUS: 2, Kinds: map[string]int64{"read": 600, "copy-on-write": 10, "anonymous": 350, "write-protect": 40}, Repeated: map[string]int64{"read": 5 * n}}
		x.Seen, x.Figures = seen, p.Figures(seen)
		x.Value = x.Figures[kind.Metric(kind.Exclusive, kind.Steady).Name]
	}
	return f
}

// A figure of workloads has their rates of page faults, and their copy-on-write faults, side by side.
func TestFiguresByApplication(t *testing.T) {
	f := pagesRead()
	c := f.Study.Config.(*kind.Config)
	f.Study.Metrics["hash"], f.Study.Also["hash"] = c.Metrics(false)
	f.Add("hash addresses=fixed bm large", 1).Add("hash addresses=fixed cn crun pinned large", 1)
	f.Study.Figures = []notebook.Figure{{Name: "Figures 5.9 to 5.11", Title: "Page faults by application", By: notebook.ByWorkload, Params: map[string]string{"addresses": "fixed"}}}
	drawn := map[string]string{}
	for _, f := range showtest.Figures(t, f, &Kind) {
		drawn[f.Title] = f.Alt
	}
	for title, wants := range map[string][]string{
		"Figures 5.9 to 5.11, page faults by application – all workloads (addresses=fixed) at large":          {"Bars of page faults per second of CPU time", "web, crun, CPU set: 500", "hash, crun, CPU set: 500"},
		"Figures 5.9 to 5.11, copy-on-write faults by application – all workloads (addresses=fixed) at large": {"Bars of % of the page faults", "web, bare metal: 1.0", "hash, bare metal: 1.0"},
	} {
		for _, want := range wants {
			if !strings.Contains(strings.ReplaceAll(drawn[title], "\u00a0", " "), want) {
				t.Errorf("%q lacks %q:\n%s\n%q", title, want, drawn[title], slices.Collect(maps.Keys(drawn)))
			}
		}
	}
}

// The report draws page tables and faults next to the paper's, and has its Table 5.1.
func TestPageTablesAndFaults(t *testing.T) {
	page := string(showtest.Page(t, pagesRead(), &Kind))
	for _, want := range []string{
		"Page-table entries that several guests have", "at the steady state", "crun, CPU set: 62.0 % (62.0 to 62.0) groupable, 31.0 % active and groupable",
		"Page faults that repeat another guest’s", "31.0 %", "Page faults by kind, in percent, and Table 5.1 of the paper", "the paper, HTTPd", "61.598", "the paper, Average",
		"4 guests at once",
	} {
		if !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), want) && !strings.Contains(strings.ReplaceAll(page, "&nbsp;", " "), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
