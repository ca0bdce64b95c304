//go:build !amd64

package memory

// object is empty: the search for the kernel's map of physical memory works only on x86-64.
var object []byte
