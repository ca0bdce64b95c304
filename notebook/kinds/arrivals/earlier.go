package arrivals

import "tare/notebook"

var _ = notebook.Renames(Name, notebook.MetricNames{
	"start time":                     "start_mean",
	"start time, median":             "start_p50",
	"start time, p95":                "start_p95",
	"start time, p99":                "start_p99",
	"start time, longest":            "start_max",
	"time to first process":          "first_process_mean",
	"time to first answer":           "first_answer_mean",
	"time to first answer, median":   "first_answer_p50",
	"time to first answer, p95":      "first_answer_p95",
	"time to first answer, p99":      "first_answer_p99",
	"time to first answer, longest":  "first_answer_max",
	"achieved rate":                  "rate_reached",
	"client's timer error, p99":      "client_late_p99",
	"client's CPU time":              "client_cpu",
	"engine's samples in the kernel": "profile_engine_kernel",
	"engine's samples in Go's garbage collection and allocation":                   "profile_engine_go_memory",
	"engine's samples in the kernel's memory management, process creation and end": "profile_engine_kernel_memory",
	"samples that are the engine's":                                                "profile_engine",

	"engine's and containers' samples in the kernel":                                               "profile_all_kernel",
	"engine's and containers' samples in Go's garbage collection and allocation":                   "profile_all_go_memory",
	"engine's and containers' samples in the kernel's memory management, process creation and end": "profile_all_kernel_memory",
})
