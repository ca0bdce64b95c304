package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/desk/claims"
	"tare/notebook"
)

// completionCommand takes the place of cobra's command of that name, whose help is longer.
func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{Use: "completion bash|zsh|fish|powershell", Short: "Print a script that lets a shell complete commands, flags and values",
		Long: `Prints a script for a shell. With it the Tab key completes commands, flags and values, such as the names of studies and
workloads, platforms with their engines, results folders and formats. The .deb and the .rpm install it for bash, zsh and fish.`,
		Example:   "  source <(tare completion bash)\n  tare completion fish >tare.fish   # into ~/.config/fish/completions",
		ValidArgs: shells,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch strings.Join(args, " ") {
			case "bash":
				return writeBashCompletion(os.Stdout, root)
			case "zsh":
				return root.GenZshCompletion(os.Stdout)
			case "fish":
				return root.GenFishCompletion(os.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(os.Stdout)
			}
			return asUse(fmt.Errorf("completion %q: must be one of %s", strings.Join(args, " "), strings.Join(shells, ", ")))
		}}
}

// writeBashCompletion writes cobra's script with one correction. The script escapes commas, and bash needs no escape there. After an escape
// the script does not recognize what stands before the last colon or equals sign, so bash would insert it twice.
func writeBashCompletion(w io.Writer, root *cobra.Command) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	const before = `__tare_handle_special_char "$cur" :` + "\n"
	first, rest, found := strings.Cut(script.String(), before)
	if !found {
		panic("cobra's script for bash has changed")
	}
	_, err := io.WriteString(w, first+`COMPREPLY=("${COMPREPLY[@]//\\,/,}")`+"\n    "+before+rest)
	return err
}

// completer gives the values that begin with a word.
type completer = cobra.CompletionFunc

// complete lets a shell complete values. labCompletions has those of commands that measure.
func complete(root *cobra.Command) {
	all := map[string]completer{
		"--against":        parts(":", environments),
		"advise --exclude": parts(",", func([]string, string) []string { return slices.Concat(notebook.Platforms, notebook.Provisionings) }),
		"advise --workload": parts("", func(args []string, _ string) []string {
			return measured(args, func(t notebook.Treatment) string { return t.Workload })
		}),
		"claims --study": parts("", func([]string, string) []string { return claims.Papers() }),
	}
	for _, name := range []string{"summary", "report", "export", "claims", "advise", "explain", "compare"} {
		all[name] = resultsFolders
	}
	maps.Copy(all, labCompletions())
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
		c.ValidArgsFunction = all[name]
		c.Flags().VisitAll(func(f *pflag.Flag) {
			of := all[name+" --"+f.Name]
			if of == nil {
				of = all["--"+f.Name]
			}
			if of == nil {
				return
			}
			if err := c.RegisterFlagCompletionFunc(f.Name, of); err != nil {
				panic(err) // the command has the flag
			}
		})
		for _, below := range c.Commands() {
			add(below)
		}
	}
	add(root)
}

// beginning keeps the values that begin with the word, each once.
func beginning(word string, values []string) (fit []string) {
	for _, v := range values {
		if strings.HasPrefix(v, word) && !slices.Contains(fit, v) {
			fit = append(fit, v)
		}
	}
	return fit
}

// oneWord completes one of the values.
func oneWord(values ...string) completer {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return beginning(word, values), cobra.ShellCompDirectiveNoFileComp
	}
}

// suggest lets a shell complete a flag's value, where the flag allows only these.
func suggest(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, oneWord(values...)); err != nil {
		panic(err) // the command has the flag, and nothing else completes it
	}
}

// parts completes the last part of a word that a separator divides; without a separator the whole word. of gives the values of a part for
// the command's arguments and the part.
func parts(separator string, of func(args []string, part string) []string) completer {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		done, directive := "", cobra.ShellCompDirectiveNoFileComp
		if separator == "," {
			done = word[:strings.LastIndex(word, ",")+1]
		}
		if separator != "" {
			directive |= cobra.ShellCompDirectiveNoSpace // more may follow
		}
		part := word[len(done):]
		fit := beginning(part, of(args, part))
		for i := range fit {
			fit[i] = done + fit[i]
		}
		return fit, directive
	}
}

// resultsFolders completes folders that hold a study.json. Where none fits, the shell completes other folders, to look below them.
func resultsFolders(c *cobra.Command, args []string, word string) (fit []string, _ cobra.ShellCompDirective) {
	if c.Name() == "compare" && len(args) >= 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	above, _ := filepath.Split(word)
	entries, err := os.ReadDir(cmp.Or(above, "."))
	if err != nil {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	for _, e := range entries {
		if dir := above + e.Name(); strings.HasPrefix(dir, word) && notebook.Exists(dir) {
			fit = append(fit, dir)
		}
	}
	if fit == nil {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return fit, cobra.ShellCompDirectiveNoFileComp
}

// measured are the values of the configurations in results folders, where they can be read.
func measured(dirs []string, value func(notebook.Treatment) string) (all []string) {
	for _, dir := range dirs {
		if f, err := notebook.Read(dir); err == nil {
			for _, t := range f.Study.Treatments {
				all = append(all, value(t))
			}
		}
	}
	return all
}

// environments are those in the results folders, as --against names them. Without a folder they are the platforms.
func environments(dirs []string, _ string) []string {
	all := measured(dirs, func(t notebook.Treatment) string {
		keys := map[string]string{}
		for _, f := range []notebook.Factor{notebook.FactorPlatform, notebook.FactorEngine, notebook.FactorProvisioning} {
			if v := f.Of(t); v != "" {
				keys[f.Name] = v
			}
		}
		return notebook.ReferenceText(keys)
	})
	if all == nil {
		return notebook.PlatformWords
	}
	return all
}
