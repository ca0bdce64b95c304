package starting

import "tare/notebook"

var _ = notebook.Renames(Name, notebook.MetricNames{
	"guest created":           "guest_created",
	"first process runs":      "first_process",
	"engine returned":         "engine_returned",
	"ruler says hello":        "ruler_hello",
	"work ordered":            "work_ordered",
	"login prompt":            "login_prompt",
	"first useful answer":     "first_answer",
	"answer after restore":    "answer_after_restore",
	"size of the saved state": "state_size",
	"start-up time":           "start_up_time",
})
