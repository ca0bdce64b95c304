package page

import (
	"strings"

	"tare/desk/words"
	"tare/notebook"
)

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	s = words.Plain(s)
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+"
	if s != "" && strings.Trim(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// topology says how many sockets, NUMA nodes, cores and threads a host has.
func topology(cpus []notebook.CPU) string {
	cores, sockets, nodes := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range cpus {
		cores[c.Core], sockets[c.Socket], nodes[c.Node] = true, true, true
	}
	s := words.Count(len(cpus), "CPU") + " on " + words.Count(len(cores), "core")
	switch {
	case len(cpus) > len(cores):
		s += " (simultaneous multithreading)"
	case len(cpus) > 0:
		s += " (one thread a core)"
	}
	return s + ", " + words.Count(len(sockets), "socket") + ", " + words.Count(len(nodes), "NUMA node")
}
