//go:build !linux

package main

import "github.com/spf13/cobra"

// labCommands are none: only Linux measures. Other systems read the results.
func labCommands() []*cobra.Command { return nil }

// labCompletions are none, like the commands.
func labCompletions() map[string]completer { return nil }
