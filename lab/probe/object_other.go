//go:build !amd64 && !arm64

package probe

var object []byte
