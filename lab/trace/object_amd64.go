package trace

import _ "embed" // the tracers' programs

// object is the files of bpf, which `make generate` compiles as one for this kind of machine.
//
//go:embed trace_amd64.o
var object []byte
