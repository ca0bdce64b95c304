// Command tare is the smallest program that can be a virtual machine's first process and the ruler in its
// container. The tests of packages vm and vmcn put it into their guests.
package main

import (
	"fmt"
	"os"

	"tare/lab/engine/qemu/guestinit"
	"tare/lab/ruler"
)

func main() {
	guestinit.Init(nil)
	if len(os.Args) < 2 || os.Args[1] != "ruler" {
		fmt.Fprintln(os.Stderr, "usage: tare ruler …")
		os.Exit(2)
	}
	os.Exit(ruler.Main(os.Args[2:]))
}
