//go:build linux && !amd64 && !arm64

package ruler

var launcherCode []byte // makeELF says that there is none
