//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// completed is what a shell is offered for the last of the words, and what the shell does then.
func completed(t *testing.T, words ...string) (values []string, directive string) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(new(bytes.Buffer))
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, words...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last]
}

// What a shell does where the program offers a value, after cobra.ShellCompDirective.
const (
	thenSpace   = ":4"  // only these values
	thenMore    = ":6"  // only these values; the word may go on
	thenYAML    = ":8"  // files with these extensions
	thenFolders = ":16" // folders
)

func TestCompletion(t *testing.T) {
	sample, err := filepath.Abs("testdata/samples/chr")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"R", "R-2", "other/R"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "study.json"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		line string // the last word follows the last blank
		want string
		then string
	}{
		{"run quic", "quick", thenSpace},
		{"run ./mine", "yaml yml", thenYAML},
		{"run quick ", "", thenSpace},
		{"fit density-s", "density-small", thenSpace},
		{"study show quic", "quick", thenSpace},
		{"study check quic", "quick", thenSpace},
		{"image --study quic", "quick", thenSpace},
		{"workload show shor", "shor", thenSpace},
		{"workload show ./", "", thenFolders},
		{"fit --workload shor", "shor", thenSpace},
		{"summary ", "R R-2", thenSpace},
		{"summary other/", "other/R", thenSpace},
		{"report R R-", "R-2", thenSpace},
		{"explain oth", "", thenFolders},
		{"compare R R-2 ", "", thenSpace},
		{"run quick --platforms vm-", "vm-container", thenMore},
		{"run quick --platforms bm,container:cr", "bm,container:crun bm,container:cri", thenMore},
		{"bench --platforms cn:do", "cn:docker", thenMore},
		{"run quick --only plat", "platform=", thenMore},
		{"run quick --only platform=v", "platform=vm platform=vmcn", thenMore},
		{"run quick --only platform=cn,workload=", "platform=cn,workload=cpu platform=cn,workload=ladder-syscall platform=cn,workload=ladder-io", thenMore},
		{"fit --only workload=shor", "workload=shor", thenMore},
		{"run quick --explain=de", "default deep", thenMore},
		{"run quick --explain=sched,bl", "sched,block", thenMore},
		{"schema s", "study summary", thenSpace},
		{"completion z", "zsh", thenSpace},
		{"summary --against v", "vm vmcn vm-container", thenMore},
		{"summary " + sample + " --against cn", "cn:docker:quota cn:docker:set", thenMore},
		{"advise " + sample + " --workload ", "cpu", thenSpace},
		{"advise --prefer l", "latency", thenSpace},
		{"claims --study pin", "pinning", thenSpace},
		{"run quick --network m", "macvlan", thenMore},
		{"run quick --provisioning q", "quota", thenMore},
		{"run quick --accel kvm-", "kvm-emulated", thenSpace},
	} {
		got, then := completed(t, strings.Split(c.line, " ")...)
		if strings.Join(got, " ") != c.want || then != c.then {
			t.Errorf("tare %s\ngot  %q %s\nwant %q %s", c.line, strings.Join(got, " "), then, c.want, c.then)
		}
	}
}

// bash inserts a candidate in place of what follows the last colon or equals sign.
func TestCompletionInBash(t *testing.T) {
	var script bytes.Buffer
	if err := writeBashCompletion(&script, rootCommand()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ word, offered, inserted string }{
		{"qui", "quick", "quick"},
		{"bm,v", "bm,vm", "bm,vm"},
		{"cn:cr", "cn:crun", "crun"},
		{"bm,cn:cr", "bm,cn:crun", "crun"},
		{"platform=cn,engine=d", "platform=cn,engine=docker", "docker"},
	} {
		// The functions stand for the package bash-completion and for tare.
		said, err := exec.CommandContext(t.Context(), "bash", "-c", script.String()+`
tare() { printf '%s\n:6\n' "$offered"; }
_init_completion() { cur=$word prev=run words=(tare run "$word") cword=2; }
COMP_WORDBREAKS=$' \t\n"><=;|&(:\'' COMP_TYPE=9 word=$0 offered=$1
__start_tare 2>/dev/null
printf %s "${COMPREPLY[*]}"`, c.word, c.offered).Output()
		if err != nil || string(said) != c.inserted {
			t.Errorf("%s: bash inserts %q (%v), want %q", c.word, said, err, c.inserted)
		}
	}
}

// A shell completes exactly the formats that a command has.
func TestCompletionOfFormats(t *testing.T) {
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Flags().Lookup("format") == nil {
			return
		}
		n++
		words := strings.Fields(c.CommandPath())[1:]
		got, then := completed(t, append(words, "--format", "")...)
		arguments := []string{"R", "S"}
		if c.Name() != "compare" {
			arguments = arguments[:1]
		}
		if c.Args != nil && c.Args(c, arguments) != nil {
			arguments = nil
		}
		root := rootCommand()
		root.SetArgs(slices.Concat(words, arguments, []string{"--format", "none"}))
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.HasSuffix(err.Error(), "must be one of "+strings.Join(got, ", ")) || then != thenSpace {
			t.Errorf("%s --format: completes %q %s; a wrong value: %v", c.CommandPath(), got, then, err)
		}
	}
	walk(rootCommand())
	if n < 10 {
		t.Errorf("only %d commands have --format", n)
	}
}
