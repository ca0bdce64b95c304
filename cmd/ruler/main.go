//go:build linux

// Command ruler is the first process of every guest: it runs the work and measures it (package lab/ruler). It is static and small,
// because a guest pays for its start and its memory. The build embeds it into tare (package lab/programs), which starts it.
//
// It never asks how many CPUs its cgroup allows, because Serve sets the number of threads.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"

	"tare/lab/ruler"
)

func main() { os.Exit(ruler.Main(os.Args[1:])) }
