// Package host knows the machine: its topology, what it can do (capabilities, found by trying), the limits that
// its kernel has in force on a process, and the undo journal of everything that Tare changes on it.
//
// Everything but this file needs Linux.
package host
