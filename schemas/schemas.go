// Package schemas holds the JSON schemas of the files that people write: studies, workloads and claims. Editors use the schemas to complete
// and check such files. It also holds the schema of the summary that Tare writes for programs. The package's test generates the schemas from
// the Go types that are decoded or encoded (make generate).
package schemas

import "embed"

// FS holds study.json, workload.json, claims.json and summary.json.
//
//go:embed *.json
var FS embed.FS
