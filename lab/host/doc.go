// Package host knows the machine: its topology, what it can do (capabilities, found by trying), and how it is made a
// smaller one by taking CPUs offline.
//
// Everything but this file needs Linux.
package host
