//go:build linux && !amd64

package qemu

// tscKHz is the frequency of a PC's time-stamp counter. Machines are made on x86-64 only (checkArchitecture).
func tscKHz() uint64 { return 0 }
