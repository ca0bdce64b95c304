// Command tare says what an execution platform costs the work that runs on it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/desk/export"
	"tare/desk/words"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// exit is the status to end with after a failure that has been reported already. docs/commands.md lists them all.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// What a failure that has not been reported yet ends with.
const (
	wentWrong   = 1
	wrongUse    = 2
	interrupted = 130
)

// misuse is an error in the command line.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// asUse marks an error as one in the command line; nil stays nil.
func asUse(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

// ending are the signals by which a user ends a program.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func run(args []string) int {
	// The first interrupt ends the run in order: guests are destroyed and the host is restored, within a bounded time.
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	defer stop()
	// When the reader of our output is gone (`| head`), writing fails; the signal must not end us with guests still running.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if command == root { // it only finds the command that was named
		err = asUse(err)
	}
	var status exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case endedReading(err):
		return 0 // whoever read the output, such as head, has enough
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "tare: interrupted")
		return interrupted
	}
	said := strings.TrimSpace(strings.Replace(words.Error(err), "\n\nDid you mean this?\n\t", "; did you mean ", 1)) // cobra's, of an unknown command
	fmt.Fprintln(os.Stderr, "tare:", plain(short(strings.ReplaceAll(said, "\n", "; "))))                             // one line, also of joined errors
	if errors.As(err, new(misuse)) || strings.HasPrefix(said, "--") {                                                // an error that begins with a flag is about its value
		return wrongUse
	}
	return wentWrong
}

// short leaves out the middle of an error that quotes very long text, of a damaged file say: how it begins says what is wrong, and its
// end what to do.
func short(said string) string {
	const most, end = 4000, 1000 // bytes
	if len(said) <= most {
		return said
	}
	return strings.ToValidUTF8(said[:most-end], "") + " […] " + strings.ToValidUTF8(said[len(said)-end:], "")
}

// rootCommand is tare with all its commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "What an execution platform costs the work that runs on it",
		Long: `Tare runs the same workload, from the same root filesystem, with the same ruler, on bare metal (bm), in a
container (cn), in a VM (vm) and in a container in a VM (vmcn), with a CPU quota (vanilla) or a fixed CPU set
(pinned), in random interleaved order. It reports the overhead of each platform with 95 % intervals.`,
		Example: `  sudo tare doctor                 what this host supports
  sudo tare run quick --out R      measure
  tare summary R                   print the answer again, on any machine, without root`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate(thisBuild().String())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	for _, c := range deskCommands() {
		c.PersistentPreRun = func(*cobra.Command, []string) { signal.Reset(ending...) } // nothing has to be undone
		root.AddCommand(c)
	}
	root.AddCommand(labCommands()...)
	markUse(root)
	return root
}

// markUse has the checks of a command's arguments, and of those below it, fail as errors in the command line.
func markUse(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return asUse(check(c, args)) }
	}
	if check := c.PreRunE; check != nil {
		c.PreRunE = func(c *cobra.Command, args []string) error { return asUse(check(c, args)) }
	}
	for _, below := range c.Commands() {
		markUse(below)
	}
}

// flagError says in words what was expected of a flag.
func flagError(c *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		f, expected := bad.GetFlag(), "another value"
		switch f.Value.Type() {
		case "int", "uint64":
			expected = "a whole number"
		case "duration":
			expected = "a time such as 90s, 10m or 1h30m"
		}
		err = fmt.Errorf("--%s %q: %s was expected", f.Name, bad.GetValue(), expected)
	}
	if none := (*pflag.ValueRequiredError)(nil); errors.As(err, &none) {
		err = fmt.Errorf("--%s: a value was expected after it", none.GetSpecifiedName())
	}
	return asUse(fmt.Errorf("%w; see `%s --help`", err, c.CommandPath()))
}

// folders are the arguments of a command that reads results.
func folders(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: a folder of results was expected: %s R, where `tare run --out R` wrote them", c.Name(), c.CommandPath())
	}
	return nil
}

// nothing is for a command that takes no arguments.
func nothing(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: it takes no arguments, and was given %q; see `%s --help`", c.Name(), args[0], c.CommandPath())
	}
	return nil
}

func oneOf(what, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q: one of %s was expected", what, value, strings.Join(allowed, ", "))
}

// notEmpty refuses a flag that was given nothing. Not every command has each of them.
func notEmpty(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: is a variable unset?", name)
		}
	}
	return nil
}

// tableOrJSON gives a command the flag --format, which is one of the two.
func tableOrJSON(c *cobra.Command, format *string) { formatFlag(c, format, "table", "json") }

// formatFlag gives a command the flag --format, which allows these; the first is the default.
func formatFlag(c *cobra.Command, format *string, allowed ...string) {
	n := len(allowed) - 1
	c.Flags().StringVar(format, "format", allowed[0], strings.Join(allowed[:n], ", ")+" or "+allowed[n])
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("--format", *format, allowed...) }
}

// endedReading says whether the reader of standard output closed it.
func endedReading(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE)
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := export.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
