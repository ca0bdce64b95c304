package starting

import (
	"slices"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/starting"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	first, also := kind.Config{Restore: true}.Metrics()
	newer := map[string]string{"sandbox_ready": "sandbox ready", "image_ready": "image ready", "start_as_published": "start as in the paper’s table", "restored_or_started": "VM restored, or container started"} // than format 1
	showtest.Captions(t, newer)
	older := slices.DeleteFunc(append(also, first), func(m notebook.Metric) bool { return newer[m.Name] != "" })
	showtest.Metrics(t, kind.Name, older, map[string]string{
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
		"saved":                   "saved",
		"restored":                "restored",
	})
}
