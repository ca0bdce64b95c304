package trace

import _ "embed" // the probes' programs

// object is bpf/look.c, compiled for this kind of machine by `make generate`.
//
//go:embed look_amd64.o
var object []byte
