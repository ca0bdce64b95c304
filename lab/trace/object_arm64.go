package trace

import _ "embed" // the tracers' programs

// object is bpf/trace.c, compiled for this kind of machine by `make generate`.
//
//go:embed trace_arm64.o
var object []byte
