//go:build !amd64

package memory

// object is none: where the kernel has all of physical memory is found as x86-64 has it.
var object []byte
