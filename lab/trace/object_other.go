//go:build !amd64 && !arm64

package trace

var object []byte
