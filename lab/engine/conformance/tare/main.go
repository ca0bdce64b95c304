//go:build linux

// Command tare is the smallest program that a driver can put into its guests: the ruler and nothing else. The
// suite builds it, static, so that the drivers' tests do not depend on the whole product.
package main

import (
	"fmt"
	"os"

	"tare/lab/ruler"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "ruler" {
		fmt.Fprintln(os.Stderr, "usage: tare ruler …")
		os.Exit(2)
	}
	os.Exit(ruler.Main(os.Args[2:]))
}
