package studyfile

import (
	"slices"

	"tare/notebook"
)

// Allowed implements yamlfile.Limited.
func (Place) Allowed() map[string][]string {
	return map[string][]string{
		"platform": notebook.Platforms, "provisioning": notebook.Provisionings, "networks": notebook.Networks,
		"other_cpus": {online, offline}, "other_memory": {free, withheld},
		"isolation": append(slices.Clone(notebook.Rungs), allLayers, notebook.IsolationFull),
	}
}
