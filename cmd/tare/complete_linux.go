package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/studies"
	"tare/workloads"
)

// labCompletions are the values of commands that measure, as complete has them.
func labCompletions() map[string]completer {
	studyNames := func() []string { return studyfile.Shipped(studies.FS) }
	workloadNames := func() []string { return workload.Shipped(workloads.FS) }
	return map[string]completer{
		"run":            orFile(studyNames),
		"fit":            orFile(studyNames),
		"study check":    orFile(studyNames),
		"image --study":  orFile(studyNames),
		"study show":     oneArgument(studyNames),
		"workload show":  orFolder(workloadNames),
		"fit --workload": orFolder(workloadNames),
		"--platforms":    parts(",", platforms),
		"--only":         parts(",", only),
		"--network":      parts(",", func([]string, string) []string { return notebook.Networks }),
		"--provisioning": parts(",", func([]string, string) []string { return slices.Sorted(maps.Keys(provisionings)) }),
		"bench --method": parts("", func([]string, string) []string { return studyfile.Methods }),
		"--explain": parts(",", func([]string, string) []string {
			return append([]string{studyfile.ExplainByDefault, studyfile.ExplainDeep}, notebook.TracerNames...)
		}),
	}
}

// oneArgument completes one of the values as the only argument of a command.
func oneArgument(values func() []string) completer {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return oneWord(values()...)(c, args, word)
	}
}

// orFile completes a shipped study, or a YAML file where no study fits.
func orFile(values func() []string) completer {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		fit, directive := oneArgument(values)(c, args, word)
		if fit == nil && len(args) == 0 {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		}
		return fit, directive
	}
}

// orFolder completes a shipped workload, or a folder where no workload fits.
func orFolder(values func() []string) completer {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if fit := beginning(word, values()); fit != nil {
			return fit, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

// platforms are the words for platforms, and after a colon a platform with each of its engines.
func platforms(_ []string, part string) (all []string) {
	word, _, named := strings.Cut(part, ":")
	if !named {
		return notebook.PlatformWords
	}
	for _, engine := range session.Engines.Names(notebook.PlatformNamed(word)) {
		all = append(all, word+":"+engine)
	}
	return all
}

// only are the keys of --only, and after an equals sign a key with each of its values: those of the study that the command names, or
// all that Tare knows.
func only(args []string, part string) (all []string) {
	key, _, named := strings.Cut(part, "=")
	if !named {
		for _, key := range studyfile.OnlyKeys() {
			all = append(all, key+"=")
		}
		return all
	}
	for _, value := range onlyValues(args, key) {
		all = append(all, key+"="+value)
	}
	return all
}

func onlyValues(args []string, key string) []string {
	if len(args) > 0 {
		if s, err := studyfile.Load(studies.FS, args[0], session.Known); err == nil {
			if asked, err := s.Ask(workloads.FS, studyfile.Choices{Accel: "auto"}); err == nil {
				return asked.Values(key)
			}
		}
	}
	switch f, _ := notebook.FactorNamed(key); {
	case key == "workload":
		return workload.Shipped(workloads.FS)
	case key == notebook.FactorEngine.Name:
		var all []string
		for _, platform := range notebook.Platforms {
			all = append(all, session.Engines.Names(platform)...)
		}
		return all
	default:
		return f.Values
	}
}
