// Package schemas holds the JSON schemas of the files that people write: studies, workloads and claims. Editors use the schemas to complete
// and check such files. The package's test generates the schemas from the Go types into which the files are decoded (make generate).
package schemas

import "embed"

// FS holds study.json, workload.json and claims.json.
//
//go:embed *.json
var FS embed.FS
