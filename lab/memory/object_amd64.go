package memory

import _ "embed" // the program that reads pieces of frames

// object is bpf/pieces.c, compiled for this architecture by `make generate`.
//
//go:embed pieces_amd64.o
var object []byte
