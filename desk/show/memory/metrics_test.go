package memory

import (
	"slices"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	newer := map[string]string{"guest_charged": "charged to its cgroup", "guest_charged_files": "charged to its cgroup: files", "ram_not_mapped": "RAM not mapped"} // than format 1
	showtest.Captions(t, newer)
	all := append(kind.Config{Guests: []int{1, 2, 3}, KSM: notebook.KSMSettings[0], Frames: true}.Figures(), kind.PSS)
	older := slices.DeleteFunc(all, func(m notebook.Metric) bool { return newer[m.Name] != "" })
	showtest.Metrics(t, kind.Name, older, map[string]string{
		"memory (PSS)":                       "guest_pss",
		"RSS":                                "guest_rss",
		"USS":                                "guest_uss",
		"PSS alone":                          "guest_pss_alone",
		"RSS alone":                          "guest_rss_alone",
		"PSS with KSM":                       "guest_pss_ksm",
		"PSS alone with KSM":                 "guest_pss_alone_ksm",
		"one more adds":                      "guest_pss_added",
		"one more adds with KSM":             "guest_pss_added_ksm",
		"asymptote of PSS":                   "guest_pss_asymptote",
		"asymptote of PSS with KSM":          "guest_pss_asymptote_ksm",
		"page tables":                        "guest_page_tables",
		"kernel memory":                      "guest_kernel_memory",
		"kernel copy of the emulator":        "emulator_kernel_copy",
		"anonymous (PSS)":                    "guest_pss_anonymous",
		"files (PSS)":                        "guest_pss_files",
		"duplicates within":                  "duplicates_within",
		"duplicates with the host":           "duplicates_host",
		"duplicates with other guests":       "duplicates_guests",
		"own pages":                          "own_pages",
		"own pages of the emulator":          "own_pages_emulator",
		"own pages of RAM":                   "own_pages_ram",
		"own pages of the guest's files":     "own_pages_guest_files",
		"own pages of the guest's processes": "own_pages_guest_processes",
		"own pages of the guest's kernel":    "own_pages_guest_kernel",
		"own pages free to the guest":        "own_pages_guest_free",
		"duplicates left":                    "duplicates_left",
		"idle pages":                         "idle_pages",
		"idle pages alone":                   "idle_pages_alone",
		"own pages at best":                  "own_pages_best",
		"anonymous duplicates":               "duplicates_anonymous",
		"file duplicates":                    "duplicates_file",
		"mixed duplicates":                   "duplicates_mixed",
	})
}
