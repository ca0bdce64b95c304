package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tare/lab/node"
)

// onNodeCommand runs in a pod of Kubernetes: it runs a program on the pod's node, in a folder that the pod sees elsewhere.
func onNodeCommand() *cobra.Command {
	return &cobra.Command{Use: "on-node FOLDER SEEN PROGRAM ARG…", Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			p := node.Program{Folder: args[0], Seen: args[1], Args: args[2:]}
			for _, e := range os.Environ() {
				if strings.HasPrefix(e, "TARE_") {
					p.Env = append(p.Env, e)
				}
			}
			if socket := node.Containerd(); socket != "" {
				p.Env = append(p.Env, "CONTAINERD_ADDRESS="+socket)
			}
			status, err := node.Run(c.Context(), p, os.Stdout, os.Stderr)
			if err == nil && status != 0 {
				err = exit(status)
			}
			return err
		}}
}

// enterNodeCommand is how onNodeCommand starts the program: it enters the node and then becomes the program.
func enterNodeCommand() *cobra.Command {
	return &cobra.Command{Use: node.Command, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error { return node.Main(args) }}
}
