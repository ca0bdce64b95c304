// Command runsc is gVisor's runsc, unchanged. It has a Go module of its own that builds gVisor at one exact version, so that Tare
// contains no part of gVisor. The script build in this folder builds it.
package main

import "gvisor.dev/gvisor/runsc/cli/maincli"

func main() { maincli.Main() }
