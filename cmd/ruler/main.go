//go:build linux

// Command ruler is the first process of every guest: it runs the work and measures it (package lab/ruler). It is static and
// small, since a guest pays for it: with its start, and with the memory that it takes. The build embeds it into tare (package
// lab/programs), which starts it.
//
// How many CPUs its cgroup leaves it is not asked for, when it starts or later: Serve says how many threads there are.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"

	"tare/lab/ruler"
)

func main() { os.Exit(ruler.Main(os.Args[1:])) }
