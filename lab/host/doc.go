// Package host describes the machine: its topology and its capabilities, which it finds by trying. It also makes the machine
// smaller by taking CPUs offline.
//
// Everything except this file needs Linux.
package host
