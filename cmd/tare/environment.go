package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// statuses are the exit statuses of all commands. The man page tare(1) and docs/commands.md list them.
var statuses = []option{
	{name: "0", usage: "The command succeeded, or the reader of its output, such as `head`, closed the pipe."},
	{name: "1", usage: "A run failed, a file or folder could not be read or written, or the host lacks what the command needs."},
	{name: "2", usage: "The command line is wrong: an unknown command or flag, a missing argument, or a value that a flag does not allow."},
	{name: "3", usage: "The condition of `tare compare --fail-if` holds, or the second folder lacks a result of the first."},
	{name: "130", usage: "An interrupt (Ctrl-C) or a request to terminate ended the command. `tare run` and `tare bench` clean up first and keep their runs. `tare observe --watch` goes on until it is interrupted, and exits with 0."},
}

// variables are the environment variables that Tare reads. `tare --help`, tare(1) and docs/commands.md list them.
var variables = []option{
	{name: "TARE_STATE", usage: "folder for images, disks and the undo journal (default /var/lib/tare)"},
	{name: "DOCKER_HOST", usage: "socket of the Docker Engine on this host (default unix:///var/run/docker.sock)"},
	{name: "CONTAINERD_ADDRESS", usage: "socket of containerd (default /run/containerd/containerd.sock, or that of Docker's containerd)"},
	{name: "DOCKER_CONFIG", usage: "folder with config.json, which has the logins to registries (default ~/.docker)"},
	{name: "HTTPS_PROXY", usage: "proxy for registries and downloads; NO_PROXY names hosts without one"},
	{name: "TMPDIR", usage: "folder for temporary files (default /tmp)"},
	{name: "NO_COLOR", usage: "any value: no colours on a terminal"},
	{name: "TERM", usage: "dumb: progress line by line, without moving the cursor"},
}

// addVariables lets the help of the root command end with the environment variables.
func addVariables(root *cobra.Command) {
	var list strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&list, "  %-18s %s\n", v.name, v.usage)
	}
	root.SetHelpTemplate(root.HelpTemplate() + "{{if not .HasParent}}\nEnvironment variables (sudo removes most; write sudo TARE_STATE=/DIR tare …):\n" + list.String() + "{{end}}")
}
