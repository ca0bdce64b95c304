//go:build linux

// Package kinds lists the kinds of study that the laboratory measures.
package kinds

import (
	"tare/lab/measure"
	"tare/lab/measure/arrivals"
	"tare/lab/measure/capacity"
	"tare/lab/measure/fit"
	"tare/lab/measure/idlecost"
	"tare/lab/measure/memory"
	"tare/lab/measure/paging"
	"tare/lab/measure/starting"
)

// All are the kinds of study other than timing work.
var All = measure.Registry{
	arrivals.Kind,
	capacity.Kind,
	fit.Kind,
	idlecost.Kind,
	memory.Kind,
	paging.Kind,
	starting.Kind,
}
