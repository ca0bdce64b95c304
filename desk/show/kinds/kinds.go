// Package kinds lists the kinds of study that the desk shows.
package kinds

import (
	"tare/desk/data"
	"tare/desk/show/arrivals"
	"tare/desk/show/capacity"
	"tare/desk/show/fit"
	"tare/desk/show/idlecost"
	"tare/desk/show/memory"
	"tare/desk/show/paging"
	"tare/desk/show/starting"
)

// All are the kinds, in the order in which a report shows their figures.
var All = []data.Kind{
	&capacity.Kind,
	&memory.Kind,
	&fit.Kind,
	&paging.Kind,
	&arrivals.Kind,
	&starting.Kind,
	&idlecost.Kind,
}
