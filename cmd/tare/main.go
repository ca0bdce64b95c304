// Command tare says what an execution platform costs the work that runs on it.
//
// The same program is the ruler in every guest (`tare ruler`, and /init of a VM): see package lab/ruler.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	asGuest() // does not return if this process is a ruler: nothing of the rest is wanted there
	os.Exit(run(os.Args[1:]))
}

// exit is an error that has a message of its own already, or needs none, and the status to end with.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run(args []string) int {
	// The first interrupt ends the work in good order; what it must still do is bounded.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	// A reader that went away (`| head`) is no reason to leave guests behind: writing then fails, and that is all.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := &cobra.Command{
		Use:   "tare",
		Short: "What an execution platform costs the work that runs on it",
		Long: `Tare runs the same workload, from the same root filesystem, with the same ruler, on bare metal (bm), in a
container (cn), in a VM (vm) and in a container in a VM (vmcn), with the scheduler left alone (vanilla) or with
CPUs pinned, in random interleaved order, and says what each platform costs, with honest intervals.`,
		Example: `  sudo tare doctor                 what this host can do
  sudo tare run quick --out R      measure
  tare summary R                   the answer again, anywhere, without root`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; `%s --help` shows what there is", err, c.CommandPath())
	})
	root.AddCommand(deskCommands()...)
	root.AddCommand(labCommands()...)
	err := root.ExecuteContext(ctx)
	var status exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "tare: interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, "tare:", plain(strings.ReplaceAll(err.Error(), "\n", "; "))) // one line, also of joined errors
	return 1
}

// version is the module's version, or the commit that the program was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += " " + s.Value[:12]
			}
		}
	}
	return v
}

// release is set by the linker: see the Makefile.
var release string

func oneOf(what, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	text := ""
	for i, a := range allowed {
		if i > 0 {
			text += ", "
		}
		text += a
	}
	return fmt.Errorf("%s %q: one of %s was expected", what, value, text)
}
