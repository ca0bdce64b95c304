//go:build linux

package session

import (
	"tare/lab/measure"
	"tare/lab/measure/arrivals"
	"tare/lab/measure/capacity"
	"tare/lab/measure/fit"
	"tare/lab/measure/memory"
	"tare/lab/measure/paging"
	"tare/lab/measure/starting"
	"tare/lab/study"
)

// Kinds are the kinds of study that Tare has, besides timing work.
var Kinds = measure.Registry{
	arrivals.Kind,
	capacity.Kind,
	fit.Kind,
	memory.Kind,
	paging.Kind,
	starting.Kind,
}

// Known is what a study can name.
var Known = study.Known{Engines: Engines, Kinds: Kinds}
