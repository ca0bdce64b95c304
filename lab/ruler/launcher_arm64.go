//go:build linux

package ruler

import _ "embed"

//go:embed launcher/arm64.bin
var launcherCode []byte
