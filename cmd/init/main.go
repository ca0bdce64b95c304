//go:build linux

// Command init is the first process of a virtual machine that Tare boots. It brings up the machine's devices and becomes the ruler,
// or starts the container with the ruler (package guestinit). The build embeds it into tare (package lab/programs), which puts it
// into the machine's initramfs.
package main

import "tare/lab/engine/qemu/guestinit"

func main() { guestinit.Main() }
