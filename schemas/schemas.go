// Package schemas holds the JSON schemas of the files that people write: studies, workloads and claims. Editors read them, to complete
// and check such a file. The package's test makes them of the Go types as which the files are decoded (make generate).
package schemas

import "embed"

// FS holds NAME.json for each.
//
//go:embed *.json
var FS embed.FS
