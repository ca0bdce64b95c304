package pagetable

import _ "embed" // the programs that read page tables

// object is bpf/pagetable.c, compiled for this architecture by `make generate`.
//
//go:embed pagetable_amd64.o
var object []byte
