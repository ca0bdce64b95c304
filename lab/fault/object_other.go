//go:build !amd64

package fault

// object is none: the program walks page tables as x86-64 has them.
var object []byte
