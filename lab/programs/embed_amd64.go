//go:build linux

package programs

import "embed"

//go:embed all:amd64
var packed embed.FS
