package fault

import _ "embed" // the program that sees faults

// object is bpf/fault.c, compiled for this architecture by `make generate`.
//
//go:embed fault_amd64.o
var object []byte
