// Command runsc is gVisor's own, in a module of its own: gVisor is built from its Go module at one exact version, and
// nothing of it is part of Tare. See build beside this file.
package main

import "gvisor.dev/gvisor/runsc/cli/maincli"

func main() { maincli.Main() }
