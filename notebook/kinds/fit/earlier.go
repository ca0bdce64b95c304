package fit

import "tare/notebook"

var _ = notebook.Renames(Name, notebook.MetricNames{
	"share of the host that a guest needs (%s below %s times its value alone)": "host_share(%s,%s)",
	"guests that fit": "guests_fit",
})
