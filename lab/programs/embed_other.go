//go:build linux && !amd64 && !arm64

package programs

import "embed"

var packed embed.FS
