//go:build linux

package session

import (
	"tare/lab/measure/kinds"
	"tare/lab/studyfile"
)

// Known is what a study can name.
var Known = studyfile.Known{Engines: Engines, Kinds: kinds.All}
