//go:build !amd64

package fault

// object is empty: the program walks page tables of x86-64 only.
var object []byte
