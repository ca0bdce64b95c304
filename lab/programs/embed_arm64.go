//go:build linux

package programs

import "embed"

//go:embed all:arm64
var packed embed.FS
