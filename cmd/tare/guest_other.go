//go:build !linux

package main

import "github.com/spf13/cobra"

// labCommands: only Linux measures. What is measured there can be read here.
func labCommands() []*cobra.Command { return nil }
