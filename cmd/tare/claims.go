package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/fleet"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/studies"
	"tare/yamlfile"
)

func claimsCommand() *cobra.Command {
	var format, study, file string
	c := &cobra.Command{
		Use:   "claims DIR… | FLEET",
		Short: "Test whether published findings hold on this host",
		Long: `Gives each published finding a verdict with its evidence: "holds here", "does not hold here", "not decided" (the
interval is too wide; about how many more rounds would be enough), or "not testable here" (what is missing, and why). Emulated
runs and runs with a failed A/A check decide nothing. Where no claim is about the results, the answer names the studies that
have claims. All verdicts of one call are corrected together for multiple comparisons, so name only the claims to test.

For the folder of a fleet it tests the claims on each host. It says on how many hosts each claim holds, and names the hosts that
refute it.`,
		Example: `  tare claims R
  tare claims R S --study pinning
  tare claims R --format json | jq '.[] | select(.verdict == "does not hold here")'
  tare claims R --claims mine.yaml`,
		Args: folders,
		RunE: func(c *cobra.Command, dirs []string) error {
			var all []claims.Claim
			if file != "" {
				text, err := yamlfile.Read(file)
				var at *fs.PathError
				if errors.As(err, &at) {
					err = fmt.Errorf("--claims %s: %w; name a claims file", file, at.Err)
				}
				if err != nil {
					return err
				}
				if all, err = claims.Parse(file, text); err != nil {
					return err
				}
			}
			opt := data.Options{Kinds: kinds.All, Baseline: bareMetal}
			many, err := manyFolders(dirs)
			if err != nil {
				return err
			}
			var f *fleet.Fleet
			if many != nil {
				if f, err = fleet.Read(many, opt); err != nil {
					return err
				}
				dirs = f.Hosts[0].Folders // its study names the claims, as those of the others do
			}
			s, err := data.Read(dirs, opt)
			if err != nil {
				return err
			}
			var shipped []claims.Claim
			switch {
			case study != "":
				if shipped, err = claims.Shipped(study); err != nil {
					return fmt.Errorf("--study: %w", err)
				}
			case file == "":
				if shipped, err = claims.About(s); err != nil {
					return err
				}
			}
			all = append(shipped, all...)
			if f != nil {
				return judgeFleet(f, all, opt, format, study != "" || file != "" || nameClaims(s))
			}
			verdicts := claims.Judge(s, all)
			if format == "json" {
				return export.Verdicts(os.Stdout, verdicts)
			}
			if study == "" && file == "" && !nameClaims(s) && !slices.ContainsFunc(verdicts, func(v claims.Verdict) bool { return v.Concerns() }) {
				return terminal.NoClaims(os.Stdout, studiesWithClaims(), screen(os.Stdout))
			}
			return terminal.Verdicts(os.Stdout, verdicts, s.Doubts, screen(os.Stdout))
		},
	}
	tableOrJSON(c, &format)
	c.Flags().StringVar(&study, "study", "", "only these shipped claims, such as pinning (default: those that the folders' studies name, else all)")
	c.Flags().StringVar(&file, "claims", "", "file with your own claims; replaces the shipped ones unless --study names some")
	return c
}

// nameClaims reports whether a study of the folders names claims.
func nameClaims(s *data.Summary) bool {
	return slices.ContainsFunc(s.Folders, func(f data.Folder) bool { return len(f.Study.Claims) > 0 })
}

var claimsKey = regexp.MustCompile(`(?m)^claims:`)

// studiesWithClaims are the shipped studies that name claims. It omits a study's small version, which has the same claims.
func studiesWithClaims() (names []string) {
	files, err := fs.Glob(studies.FS, "*.yaml")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, file := range files {
		text, err := fs.ReadFile(studies.FS, file)
		if err != nil {
			panic(err) // the file is embedded in the program
		}
		name := strings.TrimSuffix(file, ".yaml")
		of, small := strings.CutSuffix(name, "-small")
		if claimsKey.Match(text) && !(small && slices.Contains(files, of+".yaml")) {
			names = append(names, name)
		}
	}
	return names
}
