//go:build linux

// Command tare is what the driver puts into its guests, and nothing else: the way through the layers, and the ruler.
package main

import (
	"fmt"
	"os"

	"tare/lab/engine/layers"
	"tare/lab/ruler"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == layers.Command {
		os.Exit(layers.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "ruler" {
		os.Exit(ruler.Main(os.Args[2:]))
	}
	fmt.Fprintln(os.Stderr, "usage: tare layers|ruler …")
	os.Exit(2)
}
