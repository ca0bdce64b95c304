//go:build linux

package session

import (
	"tare/lab/measure/kinds"
	"tare/lab/study"
)

// Known is what a study can name.
var Known = study.Known{Engines: Engines, Kinds: kinds.All}
