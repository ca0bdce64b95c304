package words

import _ "embed"

// Report has the texts of a report's page, each by its name, as package html/template reads them.
//
//go:embed report.gohtml
var Report string
