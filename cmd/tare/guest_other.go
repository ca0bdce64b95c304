//go:build !linux

package main

import "github.com/spf13/cobra"

// asGuest: only Linux has guests.
func asGuest() {}

// labCommands: only Linux measures. What is measured there can be read here.
func labCommands() []*cobra.Command { return nil }
