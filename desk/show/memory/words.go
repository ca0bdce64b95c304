package memory

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"guest_pss":                 "memory (PSS)",
	"guest_rss":                 "RSS",
	"guest_uss":                 "USS",
	"guest_pss_alone":           "PSS alone",
	"guest_rss_alone":           "RSS alone",
	"guest_pss_ksm":             "PSS with KSM",
	"guest_pss_alone_ksm":       "PSS alone with KSM",
	"guest_pss_added":           "one more adds",
	"guest_pss_added_ksm":       "one more adds with KSM",
	"guest_pss_asymptote":       "asymptote of PSS",
	"guest_pss_asymptote_ksm":   "asymptote of PSS with KSM",
	"guest_page_tables":         "page tables",
	"guest_kernel_memory":       "kernel memory",
	"guest_charged":             "charged to its cgroup",
	"guest_charged_files":       "charged to its cgroup: files",
	"emulator_kernel_copy":      "kernel copy of the emulator",
	"guest_pss_anonymous":       "anonymous (PSS)",
	"guest_pss_files":           "files (PSS)",
	"duplicates_within":         "duplicates within",
	"duplicates_host":           "duplicates with the host",
	"duplicates_guests":         "duplicates with other guests",
	"own_pages":                 "own pages",
	"own_pages_emulator":        "own pages of the emulator",
	"own_pages_ram":             "own pages of RAM",
	"own_pages_guest_files":     "own pages of the guest's files",
	"own_pages_guest_processes": "own pages of the guest's processes",
	"own_pages_guest_kernel":    "own pages of the guest's kernel",
	"own_pages_guest_free":      "own pages free to the guest",
	"duplicates_left":           "duplicates left",
	"idle_pages":                "idle pages",
	"idle_pages_alone":          "idle pages alone",
	"ram_not_mapped":            "RAM not mapped",
	"own_pages_best":            "own pages at best",
	"duplicates_anonymous":      "anonymous duplicates",
	"duplicates_file":           "file duplicates",
	"duplicates_mixed":          "mixed duplicates",
})

// unit is the unit of the sizes in Weights.
const unit = "MiB"

var phrases = words.Phrases{
	Where: atOnce, Head: atOnce, Baseline: "a process on bare metal", Verb: "takes",
	Of:    func(*data.Row) string { return " memory" },
	Times: func(*data.Row) string { return " times the memory" },
	More:  [2]string{"takes more memory", "take more memory"},
	Less:  [2]string{"takes less memory", "take less memory"},
	Ratio: "a guest takes %s more memory", Better: "lighter",
	Terms: []words.Term{
		{Name: "PSS", Text: "proportional set size: what a guest’s processes take of the host’s memory, of each page its share among all that map it. RSS counts each page whole, USS those alone that nothing else maps."},
		{Name: "KSM", Text: "kernel same-page merging: the kernel keeps one copy of anonymous pages that are alike, where their process allows it."},
	},
}

// atOnce says with how many guests at the same time the row was measured. The text follows the subject of the row's table.
func atOnce(s *data.Summary, r *data.Row) string {
	c := weighed(r)
	said := ", a single guest"
	if n := c.Most(); n > 1 {
		said = fmt.Sprintf(", %s guests at once", words.Thousands(n))
	}
	other := func(o *data.Row) bool {
		return o.Kind == r.Kind && o.HostID == r.HostID && o.Treatment.Workload == r.Treatment.Workload && !data.SameMeasure(o, r)
	}
	if slices.ContainsFunc(s.Rows, other) { // the numbers, and KSM, distinguish their tables
		said += " of " + strings.Trim(fmt.Sprint(c.Numbers()), "[]")
		switch c.KSM {
		case "":
			said += ", without KSM"
		case notebook.KSMPaper:
			said += ", with KSM as the paper sets it"
		default:
			said += ", with KSM as the kernel has it"
		}
	}
	return words.Plain(said)
}

// partName names a part of a guest's memory, and how many of it there are: "5 × bash".
func partName(p MemoryPart) string {
	switch {
	case p.Others:
		return fmt.Sprintf("%.3g others", p.Count)
	case p.Count == 1:
		return words.Plain(p.Name)
	}
	return fmt.Sprintf("%.3g × %s", p.Count, words.Plain(p.Name))
}

// contained says what the guest's memory includes that is not part of the work, and what it leaves out.
func contained(w *Weights) (all []string) {
	at := w.at(w.Points)
	if at < 0 {
		return nil
	}
	p := w.Points[at]
	say := func(e stats.Estimate, format string) {
		if e.Value > 0 {
			all = append(all, fmt.Sprintf(format, size(e)))
		}
	}
	say(p.Engine, "in it: the engine's own process, %s a guest")
	say(p.Ruler, "taken off: the ruler, %s a guest")
	say(p.Copy.Estimate, "taken off: the emulator's copy of the kernel, %s a guest")
	say(p.Tables, "not in it: page tables, %s a guest")
	say(p.Kernel.Estimate, "not in it: the kernel's own memory for it, %s a guest, page tables among it")
	return all
}

// inside says what else is known of how a guest uses its VM's memory, or why nothing is known.
func inside(a *Alone) (all []string) {
	if a.Why != "" {
		all = append(all, "what its memory is to it is not known: "+words.Plain(a.Why))
	}
	r := a.RAM
	if r == nil {
		return all
	}
	_, guest, rss := r.Of(notebook.FramesFree)
	all = append(all, fmt.Sprintf("of its RAM %s are free to it, of which the host has pages for %s", words.Digits(guest, 3)+" "+unit, words.Digits(rss, 3)+" "+unit))
	if r.AtHand.Value > 0 {
		all = append(all, fmt.Sprintf("%s more are free and kept at hand by its CPUs, among what is the kernel's: other", size(r.AtHand)))
	}
	if r.Changed.Value > 0 {
		all = append(all, fmt.Sprintf("%s were something else to it when it was asked again after the scan", size(r.Changed)))
	}
	if r.Out != "" {
		all = append(all, "of its files were left out: "+words.Plain(r.Out))
	}
	return all
}

// merging says what KSM achieved with the most guests that every trial reached, and what it cost; empty without KSM.
func merging(w *Weights) string {
	at := w.at(w.Merged)
	if at < 0 {
		return ""
	}
	p := w.Merged[at]
	s := fmt.Sprintf("with KSM, %s: %s a guest; ksmd took %s of CPU time until it merged no more", words.Count(p.Guests, "guest"), size(p.PSS), words.Measured(p.CPUS.Value, max(p.CPUS.Low, 0), p.CPUS.High, "s"))
	if p.Unsettled > 0 {
		s += ", and still merged when its time was over in " + words.Count(p.Unsettled, "weighing")
	}
	return s
}

func size(e stats.Estimate) string { return words.Measured(e.Value, max(e.Low, 0), e.High, unit) }

// lacks names what a VM lacks: "Video, graphics and audio".
func lacks(u unusedDevices) string { return words.Capital(words.List(u.Kinds)) }

func measured(e stats.Estimate) string { return words.Measured(e.Value, e.Low, e.High, "") }

// Texts of the lines.
const (
	linesTitle    = "Memory by number of guests"
	linesAxis     = "PSS of each guest in MiB, over the number of guests"
	withKSM       = " + KSM"
	linesEmulated = "What is emulated has its emulator’s own memory in it, which is not that of a VM with hardware virtualization."
)

func linesHow(rows []*data.Row, merged bool) string {
	how := "Each mark is what one guest takes of the host’s memory among so many: PSS of all over their number, the mean over rounds with its 95 % interval. " +
		words.Provisionings(rows, "Hollow marks", "filled ones") + " Both axes are logarithmic. Compare Figure 6.2 of “A Study of Virtualization Overheads”."
	if merged {
		how += " Dashed: with their pages merged by the kernel (KSM)."
	}
	return how
}

func linesAlt(m notebook.Metric, lines []chart.Path) string {
	var said []string
	for _, l := range lines {
		var at []string
		for _, p := range l.Points {
			at = append(at, fmt.Sprintf("%.0f %s", p.X, words.Measured(p.Y.Value, data.Floor(m, p.Y.Low), p.Y.High, "")))
		}
		said = append(said, l.Names[0]+l.After+": "+strings.Join(at, ", "))
	}
	return "Lines: MiB of each guest by the number of guests. " + strings.Join(said, "; ") + "."
}

// Texts of the bars.
const (
	addedTitle = "What one more guest adds"
	addedAxis  = "MiB that one more guest adds"
	addedHow   = "Each bar is what the PSS of all guests grows by with each one more, pages not merged. Solid: anonymous memory, as the host sees it, " +
		"which a VM’s whole RAM is. Pale: pages of files and shared memory. The thin line is the 95 % interval of the sum. Figure 6.3 of “A Study of Virtualization Overheads” shows this sum with pages merged."
)

func addedCaption(from, to int, emulated bool) string {
	caption := fmt.Sprintf("From %d to %d guests.", from, to)
	if emulated {
		caption += " Hatched, closely for anonymous memory: emulated, with its emulator’s own memory in it."
	}
	return caption
}

func addedSaid(b chart.Bar, files float64) string {
	return fmt.Sprintf("%s, %s: %s, anonymous %s, files %s", b.Group, b.Names[0], b.Words, words.Digits(b.Solid, 3), words.Digits(files, 3))
}

func addedAlt(said []string) string {
	return "Bars in two parts, in MiB. " + strings.Join(said, "; ") + "."
}

// Texts of the waterfall.
const (
	aloneTitle = "What the last guest alone has, and what of it could be saved"
	aloneAxis  = "MiB of its own"
	aloneHow   = "From the top down, for each guest: pages that no other process has, part by part, in MiB; each begins where the one above it ends. " +
		"Pale, to the left: what could be saved of them. A VM’s RAM is by what it is to its guest."
)

func aloneCaption(merged, published, emulated bool) (caption string) {
	if merged {
		caption = "With pages merged by the kernel (KSM)."
	}
	if published {
		caption += " Figures 6.3 and 6.4 of the paper. In parentheses: the numbers of its VM. Its files include what the guest’s kernel has for itself."
	}
	if emulated {
		caption += " Hatched: emulated, so the emulator’s part is not that of a VM with hardware virtualization; the guest’s RAM is."
	}
	return caption
}

func aloneAlt(said []string) string { return "Waterfalls, in MiB. " + strings.Join(said, "; ") + "." }

// Parts of the waterfall.
const (
	theEmulator  = "the emulator"
	ramFiles     = "RAM: the guest’s files"
	ramProcesses = "RAM: its processes"
	ramKernel    = "RAM: its kernel"
	ramReserved  = "RAM: reserved at boot"
	ramFree      = "RAM: nobody’s there"
	allOfIt      = "all of it"
	duplicated   = "duplicates"
	notUsed      = "not used of late"
	atBest       = "at best"
)

// Texts of the tables.
const mib template.HTML = "MiB"

const (
	guestCaption   = "What the last guest consists of: "
	dupesCaption   = "Duplicates: "
	ramWhat        = "What the RAM is to the guest"
	fileWhat       = "File in the guest’s page cache"
	detailsHeading = "Its kinds of pages and its largest files"
	inItself       = "in the guest itself"
	withHost       = "with the host"
	withOthers     = "with other guests"
	inAll          = "in all"
	mergedPages    = ", with KSM"
	byGuest        = ", by what pages are to the guest"
	emulators      = "none of it: the emulator’s"
	otherFiles     = "other files"
	noFile         = "no file that was found"
	kindOfPage     = "Kind of page"
	file           = "File"
	andInThePaper  = ", and in the paper"

	unusedCaption = "What a VM takes less without devices: "
)

// Texts under the tables.
const (
	underGuest template.HTML = "Of the last guest of those that every run makes, without the ruler, and with the engine’s own process: the mean over rounds, ± half of its 95&nbsp;% interval. Several processes of one name are one line. Compare Table&nbsp;6.2 of <em>A Study of Virtualization Overheads</em>."
	underDupes template.HTML = "Of the last guest of those that every run makes, pages not merged. Each page is counted once: as one of the guest’s own again, else as one of the host’s, else as one of another guest’s. A VM’s whole RAM is anonymous to the host. Compare Table&nbsp;6.4 of <em>A Study of Virtualization Overheads</em>."
	underRAM   template.HTML = "Of the last guest of those that every run makes. What the guest has and the host has not was never touched, or was given back. A file’s pages are those in the guest’s page cache at the end of the trial."
)

var (
	sizeHeads  = []show.Head{{Text: "PSS", Small: mib, Span: 2}, {Text: "RSS", Small: mib, Span: 2}}
	guestHeads = append([]show.Head{{Text: "Process"}}, sizeHeads...)
	dupesHeads = []show.Head{
		{Text: "Alike and in another page"}, {Text: "Anonymous and anonymous", Small: mib, Span: 2}, {Text: "File and file", Small: mib, Span: 2},
		{Text: "Anonymous and file", Small: mib, Span: 2}, {Text: "All", Small: mib, Span: 2},
	}
	unusedHeads = []show.Head{
		{Text: "Taken away"}, {Text: "Alone", Small: mib, Span: 2}, {Text: "Published", Small: "MB"}, {Text: "One more adds less", Small: mib, Span: 2}, {Text: "Published", Small: "MB"},
	}
)

func ramHeads(what string) []show.Head {
	return []show.Head{
		{Text: what}, {Text: "The guest has", Small: mib, Span: 2}, {Text: "the host has", Small: mib, Span: 2}, {Text: "no other has", Small: mib, Span: 2},
		{Text: "of that duplicates", Small: mib, Span: 2}, {Text: "not used of late", Small: mib, Span: 2},
	}
}

func underUnused(merged bool) template.HTML {
	with := ""
	if merged {
		with = ", pages merged by the kernel (KSM)"
	}
	return template.HTML("PSS of the VM with all of these devices, less that of the VM without some" + with + ": the mean over rounds, ± half of its 95&nbsp;% interval. Published: <em>A Study of Virtualization Overheads</em>, Table&nbsp;6.5 and section 6.6.2, of VMs with KVM, a whole distribution and KSM; its MB is a MiB.")
}
