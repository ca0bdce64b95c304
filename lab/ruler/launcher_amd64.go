//go:build linux

package ruler

import _ "embed"

//go:embed launcher/amd64.bin
var launcherCode []byte
