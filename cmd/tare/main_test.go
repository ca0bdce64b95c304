package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// The help of each command says in one line what the command does, and shows a command line to type.
func TestEveryCommandExplainsItself(t *testing.T) {
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Hidden {
			return
		}
		n++
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") {
			t.Errorf("%s: its short text is %q", c.CommandPath(), c.Short)
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: the example does not show the command: %q", c.CommandPath(), c.Example)
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(strings.TrimSpace(line))) > 130 {
				t.Errorf("%s: a line of its help is too wide: %s", c.CommandPath(), line)
			}
		}
	}
	walk(rootCommand())
	if n < 7 { // systems other than Linux have only the desk's
		t.Errorf("%d commands", n)
	}
}

// Errors in a command line have Tare's words, not those of the libraries that parse it.
func TestErrorsInTheCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"summary":                          "summary: names no results folder: write tare summary R, after `tare run … --out R`",
		"advise R --pick first":            "--pick \"first\": must be a whole number; see `tare advise --help`",
		"advise R --pick":                  "--pick: needs a value after it; see `tare advise --help`",
		"summary R --formt json":           "unknown flag: --formt: did you mean --format; see `tare summary --help`",
		"summary R --fast":                 "unknown flag: --fast; see `tare summary --help`",
		"study lst":                        "unknown command \"lst\" for \"tare study\"; must be list, show or check",
		"compare":                          "compare: needs two results folders, before and after, or one with two kernels of VMs: write tare compare OLD [NEW]",
		"compare R S --fail-if ratio>high": `--fail-if "ratio>high": must be ratio>NUMBER or ratio<NUMBER, such as 'ratio>1.03'`,
		"compare R S --margin=":            "--margin is empty: is a variable unset?",
		"compare R S --fail-if=":           "--fail-if is empty: is a variable unset?",
		"compare R S --margin 1":           `--margin "1": must be a percentage above 0% and at most 100%, such as 5%`,
		"schema plan":                      `schema "plan": must be one of study, workload, claims, summary, fleet`,
		"summary --format xml R":           `--format "xml": must be one of table, json, csv, openmetrics`,
	} {
		root := rootCommand()
		root.SetArgs(strings.Fields(line))
		if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("tare %s:\ngot  %v\nwant %s", line, err, want)
		}
	}
}

// The exit status tells scripts whether the command line was wrong or the command failed.
func TestExitStatuses(t *testing.T) {
	silent(t)
	for line, want := range map[string]int{
		"--version":                             0,
		"version":                               0,
		"help summary":                          0,
		"summary --help":                        0,
		"schema study":                          0,
		"__complete sum":                        0,
		"measure":                               2,
		"--fast":                                2,
		"summary":                               2,
		"summary R --fast":                      2,
		"summary R --format xml":                2,
		"summary R --margin none":               2,
		"compare":                               2,
		"compare R S T":                         2,
		"compare R S --fail-if ratio>high":      2,
		"compare R S --fail-if=":                2,
		"compare R S --against cn:none:none":    2,
		"advise R --pick first":                 2,
		"advise R --prefer none":                2,
		"schema plan":                           2,
		"summary testdata/none":                 1,
		"compare testdata/none":                 1,
		"compare testdata/none testdata/none-2": 1,
	} {
		if got := run(strings.Fields(line)); got != want {
			t.Errorf("tare %s ends with %d, want %d", line, got, want)
		}
	}
}

// silent hides the output of commands in a test.
func silent(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = null, null
	t.Cleanup(func() {
		os.Stdout, os.Stderr = stdout, stderr
		null.Close()
	})
}

// `tare … | head` is not a failure: the reader has what it wanted.
func TestAClosedPipeIsNotAFailure(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	stdout := os.NewFile(w.Fd(), os.Stdout.Name())
	signal.Ignore(syscall.SIGPIPE) // as in run, which catches it
	defer signal.Reset(syscall.SIGPIPE)
	if _, err := stdout.WriteString("x"); !endedReading(fmt.Errorf("writing: %w", err)) {
		t.Errorf("%v: got another failure, want a reader that has ended", err)
	}
	if _, err := w.WriteString("x"); err == nil || endedReading(err) {
		t.Errorf("%v, of another pipe: got a reader that has ended", err)
	}
}

// An error that quotes very long text keeps what is wrong and what to do, and omits the middle.
func TestAnErrorIsShort(t *testing.T) {
	if said := "as it is: " + strings.Repeat("x", 3000); short(said) != said {
		t.Error("an error of 3,000 characters was changed")
	}
	said := short("wrong: " + strings.Repeat("€", 1<<20) + "; do this")
	if len(said) > 4100 || !strings.HasPrefix(said, "wrong: €") || !strings.HasSuffix(said, "€; do this") || !utf8.ValidString(said) {
		t.Errorf("%d bytes: %.20q … %q", len(said), said, said[max(0, len(said)-20):])
	}
}
