// Package schemas holds the JSON schemas of the files that people write: studies, workloads and claims. Editors use the schemas to complete
// and check such files. It also holds the schemas of the summaries that Tare writes for programs, of one host and of a fleet. The package's
// test generates the schemas from the Go types that are decoded or encoded (make generate).
package schemas

import "embed"

// FS holds study.json, workload.json, claims.json, summary.json and fleet.json.
//
//go:embed *.json
var FS embed.FS
