// Package studies holds the studies that ship with Tare, one YAML file each. Package lab/study reads them, and a
// user's own file the same way.
package studies

import "embed"

// FS holds NAME.yaml for each study.
//
//go:embed *.yaml
var FS embed.FS
