package capacity

import "tare/notebook"

var _ = notebook.Renames(Name, notebook.MetricNames{
	"time per request at capacity (%s at most %s)": "capacity_time(%s,%s)",
	"capacity": "capacity_rate",
})
