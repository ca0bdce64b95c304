// Package claims holds the findings of published papers as data, one YAML file for each paper. Package desk/claims
// reads them, and a user's own file the same way.
package claims

import "embed"

// FS holds NAME.yaml for each paper.
//
//go:embed *.yaml
var FS embed.FS
