package trace

import _ "embed" // the tracers' programs

// object is the files of bpf, which `make generate` compiles into one for this architecture.
//
//go:embed trace_arm64.o
var object []byte
