//go:build linux && !amd64 && !arm64

package ruler

var launcherCode []byte // makeELF returns the error
