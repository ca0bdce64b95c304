package paging

import (
	"slices"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/paging"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	first, also := kind.Config{Tables: true, SteadyS: 1, FaultsS: 1}.Metrics(false)
	newer := map[string]string{ // than format 1
		"page_faults_per_million_instructions":       "page faults per million instructions",
		"page_faults_common":                         "page faults on common translations",
		"page_faults_later_per_cpu_second":           "page faults per CPU second, second count",
		"page_faults_later_per_million_instructions": "page faults per million instructions, second count",
		"page_faults_later_repeated":                 "repeated page faults, second count",
		"page_faults_later_common":                   "page faults on common translations, second count",
		"page_faults_later_read":                     "read faults, second count",
		"page_faults_later_copy_on_write":            "copy-on-write faults, second count",
		"page_faults_later_shared":                   "shared faults, second count",
		"page_faults_later_anonymous":                "anonymous faults, second count",
		"page_faults_later_swap":                     "swap faults, second count",
		"page_faults_later_write_protect":            "write-protect faults, second count",
		"page_faults_later_unknown":                  "unknown faults, second count",
		"page_faults_bring_up":                       "page faults of the bring-up",
		"page_faults_whole_repeated":                 "repeated page faults, including bring-up",
		"page_faults_whole_read":                     "read faults, including bring-up",
		"page_faults_whole_copy_on_write":            "copy-on-write faults, including bring-up",
		"page_faults_whole_shared":                   "shared faults, including bring-up",
		"page_faults_whole_anonymous":                "anonymous faults, including bring-up",
		"page_faults_whole_swap":                     "swap faults, including bring-up",
		"page_faults_whole_write_protect":            "write-protect faults, including bring-up",
		"page_faults_whole_unknown":                  "unknown faults, including bring-up",
	}
	for _, state := range []string{kind.Initial, kind.Steady} {
		newer["entries_engine_"+state] = "entries of the engine's processes, " + state
		newer["entries_engine_groupable_"+state] = "groupable entries of the engine's processes, " + state
		newer["entries_reused_"+state] = "entries used repeatedly, " + state
		newer["entries_reused_groupable_"+state] = "groupable entries used repeatedly, " + state
		newer["entries_code_"+state] = "entries of programs and libraries, " + state
		newer["entries_data_"+state] = "entries of data files, " + state
		newer["entries_active_code_"+state] = "active entries of programs and libraries, " + state
		newer["entries_active_data_"+state] = "active entries of data files, " + state
	}
	showtest.Captions(t, newer)
	older := slices.DeleteFunc(append(also, first), func(m notebook.Metric) bool { return newer[m.Name] != "" })
	showtest.Metrics(t, kind.Name, older, map[string]string{
		"page faults per CPU second":               "page_faults_per_cpu_second",
		"repeated page faults":                     "page_faults_repeated",
		"major page faults":                        "page_faults_major",
		"page faults of a guest":                   "page_faults_per_guest",
		"CPU time of a guest":                      "guest_cpu",
		"repeated file faults":                     "page_faults_file_repeated",
		"read faults":                              "page_faults_read",
		"copy-on-write faults":                     "page_faults_copy_on_write",
		"shared faults":                            "page_faults_shared",
		"anonymous faults":                         "page_faults_anonymous",
		"swap faults":                              "page_faults_swap",
		"write-protect faults":                     "page_faults_write_protect",
		"unknown faults":                           "page_faults_unknown",
		"page-table entries, initial":              "entries_initial",
		"page-table entries, steady":               "entries_steady",
		"exclusive entries, initial":               "entries_exclusive_initial",
		"exclusive entries, steady":                "entries_exclusive_steady",
		"groupable entries, initial":               "entries_groupable_initial",
		"groupable entries, steady":                "entries_groupable_steady",
		"entries shared within guests, initial":    "entries_within_initial",
		"entries shared within guests, steady":     "entries_within_steady",
		"same frame, other address, initial":       "entries_elsewhere_initial",
		"same frame, other address, steady":        "entries_elsewhere_steady",
		"active entries, initial":                  "entries_active_initial",
		"active entries, steady":                   "entries_active_steady",
		"active and groupable entries, initial":    "entries_active_groupable_initial",
		"active and groupable entries, steady":     "entries_active_groupable_steady",
		"accessed memory, initial":                 "memory_accessed_initial",
		"accessed memory, steady":                  "memory_accessed_steady",
		"active entries of huge pages, initial":    "entries_active_huge_initial",
		"active entries of huge pages, steady":     "entries_active_huge_steady",
		"groupable entries of huge pages, initial": "entries_groupable_huge_initial",
		"groupable entries of huge pages, steady":  "entries_groupable_huge_steady",
		"entries of large folios, initial":         "entries_large_initial",
		"entries of large folios, steady":          "entries_large_steady",
	})
}
