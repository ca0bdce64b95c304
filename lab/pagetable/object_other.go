//go:build !amd64

package pagetable

// object is empty: the programs walk page tables of x86-64 only.
var object []byte
