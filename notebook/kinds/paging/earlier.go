package paging

import "tare/notebook"

var _ = notebook.Renames(Name, notebook.MetricNames{
	"page faults per CPU second":          "page_faults_per_cpu_second",
	"repeated page faults":                "page_faults_repeated",
	"major page faults":                   "page_faults_major",
	"page faults of a guest":              "page_faults_per_guest",
	"CPU time of a guest":                 "guest_cpu",
	"repeated file faults":                "page_faults_file_repeated",
	"read faults":                         "page_faults_read",
	"copy-on-write faults":                "page_faults_copy_on_write",
	"shared faults":                       "page_faults_shared",
	"anonymous faults":                    "page_faults_anonymous",
	"swap faults":                         "page_faults_swap",
	"write-protect faults":                "page_faults_write_protect",
	"unknown faults":                      "page_faults_unknown",
	"page-table entries, %s":              "entries_%s",
	"exclusive entries, %s":               "entries_exclusive_%s",
	"groupable entries, %s":               "entries_groupable_%s",
	"entries shared within guests, %s":    "entries_within_%s",
	"same frame, other address, %s":       "entries_elsewhere_%s",
	"active entries, %s":                  "entries_active_%s",
	"active and groupable entries, %s":    "entries_active_groupable_%s",
	"accessed memory, %s":                 "memory_accessed_%s",
	"active entries of huge pages, %s":    "entries_active_huge_%s",
	"groupable entries of huge pages, %s": "entries_groupable_huge_%s",
	"entries of large folios, %s":         "entries_large_%s",
})
