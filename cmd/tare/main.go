// Command tare measures what an execution platform costs the work on it: bare metal, a container, a VM, a container in a VM.
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
	"tare/yamlfile"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// exit is the status to end with after a failure that tare has already reported. [statuses] lists all.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// The status after a failure that tare has not reported yet.
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

// ending are the signals with which a user ends a program.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func run(args []string) int {
	// After the first interrupt the run still destroys its guests and restores the host, within a bounded time.
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	defer stop()
	// When the reader of our output ends (`| head`), the write fails. SIGPIPE must not kill us while guests run.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if command == root { // only an unknown command or flag fails there
		err = asUse(err)
	}
	var status exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case endedReading(err):
		return 0 // the reader, such as head, has enough
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "tare: interrupted")
		return interrupted
	}
	said := strings.TrimSpace(strings.Replace(words.Error(err), "\n\nDid you mean this?\n\t", "; did you mean ", 1)) // cobra's hint after an unknown command
	fmt.Fprintln(os.Stderr, "tare:", plain(short(strings.ReplaceAll(said, "\n", "; "))))                             // joined errors too fit on one line
	if errors.As(err, new(misuse)) || strings.HasPrefix(said, "--") {                                                // an error about a flag's value begins with the flag
		return wrongUse
	}
	return wentWrong
}

// short cuts the middle out of an error that quotes very long text, such as a damaged file. The beginning says what is wrong, the end
// what to do.
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
		Short: "Measure what containers and VMs cost your workload",
		Long: `Tare runs the same workload from the same root filesystem on bare metal (bm), in a container (cn), in a VM (vm)
and in a container in a VM (vmcn). It limits CPUs by a quota (vanilla) or by a fixed CPU set (pinned), and interleaves
the runs in random order. It reports the overhead of each platform with 95 % intervals.`,
		Example: `  sudo tare doctor                 # what this host supports
  sudo tare run quick --out R      # measure
  tare summary R                   # print the answer again, on any machine, without root`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate(thisBuild().String())
	root.SetFlagErrorFunc(flagError)
	for _, c := range deskCommands() {
		c.PersistentPreRun = func(*cobra.Command, []string) { signal.Reset(ending...) } // these commands have nothing to undo
		root.AddCommand(c)
	}
	root.AddCommand(labCommands()...)
	addVariables(root)
	complete(root)
	markUse(root)
	return root
}

// markUse marks what the argument checks of a command and its subcommands return as errors in the command line.
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

// flagError says which values a flag allows.
func flagError(c *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		f, allowed := bad.GetFlag(), "another value"
		switch f.Value.Type() {
		case "int", "uint64":
			allowed = "a whole number"
		case "duration":
			allowed = "a time such as 90s, 10m or 1h30m"
		case "bool":
			allowed = "true or false"
		}
		err = fmt.Errorf("--%s %q: must be %s", f.Name, bad.GetValue(), allowed)
	}
	if none := (*pflag.ValueRequiredError)(nil); errors.As(err, &none) {
		err = fmt.Errorf("--%s: needs a value after it", none.GetSpecifiedName())
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if near := yamlfile.Nearest(unknown.GetSpecifiedName(), flagNames(c)); near != "" {
			err = fmt.Errorf("%w: did you mean --%s", err, near)
		}
	}
	return asUse(fmt.Errorf("%w; see `%s --help`", err, c.CommandPath()))
}

// flagNames are the long names of a command's flags that its help lists.
func flagNames(c *cobra.Command) (all []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f.Name)
		}
	})
	return all
}

// folders are the arguments of a command that reads results.
func folders(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: names no results folder: write %s R, after `tare run … --out R`", c.Name(), c.CommandPath())
	}
	if slices.Contains(args, "") {
		return fmt.Errorf("%s \"\": the name of a results folder is empty", c.Name())
	}
	return nil
}

// nothing is for a command that takes no arguments.
func nothing(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s %q: takes no arguments; see `%s --help`", c.Name(), args[0], c.CommandPath())
	}
	return nil
}

func oneOf(what, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q: must be one of %s", what, value, strings.Join(allowed, ", "))
}

// notEmpty refuses flags with an empty value. A command need not have each of the flags.
func notEmpty(c *cobra.Command, names ...string) error {
	for _, name := range names {
		f := c.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		if slices.Contains(values, "") {
			return fmt.Errorf("--%s is empty: is a variable unset?", name)
		}
	}
	return nil
}

// tableOrJSON gives a command the flag --format with the values table and json.
func tableOrJSON(c *cobra.Command, format *string) { formatFlag(c, format, "table", "json") }

// formatFlag gives a command the flag --format with the allowed values. The first is the default.
func formatFlag(c *cobra.Command, format *string, allowed ...string) {
	n := len(allowed) - 1
	c.Flags().StringVar(format, "format", allowed[0], strings.Join(allowed[:n], ", ")+" or "+allowed[n])
	suggest(c, "format", allowed...)
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("--format", *format, allowed...) }
}

// endedReading reports whether err comes from writing to a standard output that its reader closed.
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
