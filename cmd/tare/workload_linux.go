package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/lab/workload"
	"tare/lab/workload/phoronix"
)

func workloadCommand() *cobra.Command {
	c := &cobra.Command{Use: "workload", Short: "List, show and import workloads",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q; must be list, show or import", args[0], c.CommandPath())
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  tare workload list\n  tare workload show cpu\n  tare workload import fs-mark-1.0.3 --files downloads --out fs-mark"}
	var files, out string
	imports := &cobra.Command{Use: "import PROFILE", Short: "Make a workload from a test profile of the Phoronix Test Suite",
		Long: `Makes a workload's folder from the folder of a test profile of the Phoronix Test Suite: test-definition.xml,
results-definition.xml, downloads.xml, install.sh. Tare downloads nothing: put the files that the profile downloads into its
folder or into --files. They must have the profile's checksums. Then name the new folder in a study, for example
workloads: [{name: ./fs-mark}].`,
		Example: "  tare workload import fs-mark-1.0.3 --files downloads --out fs-mark",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("workload import: name one folder with a test profile")
			}
			profile, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if files == "" {
				files = profile
			}
			folder, err := os.OpenRoot(profile)
			if err != nil {
				return fmt.Errorf("%s: not a folder with a test profile: %w", args[0], err)
			}
			defer folder.Close()
			downloads, err := os.OpenRoot(files)
			if err != nil {
				return fmt.Errorf("--files %s: %w; name the folder with the files that the profile downloads", files, err)
			}
			defer downloads.Close()
			made, err := phoronix.Import(filepath.Base(profile), folder.FS(), downloads.FS())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if out == "" {
				out = made.Name
			}
			if err := writeImported(made, files, out); err != nil {
				return err
			}
			w, err := workload.ReadFolder(out)
			if err != nil {
				return fmt.Errorf("%s: the new workload does not work: %w", args[0], err)
			}
			named := out // a name with a slash is a path
			if !filepath.IsAbs(out) {
				named = "./" + filepath.Clean(out)
			}
			fmt.Printf("%s is the workload %s: %s. Name it in a study, for example\n  workloads: [{name: %s}]\n", out, w.Name, w.Title, named)
			return nil
		}}
	imports.Flags().StringVar(&files, "files", "", "folder with the files that the profile downloads (default: the profile's own)")
	imports.Flags().StringVar(&out, "out", "", "folder to make (default: the profile's name without its version)")
	c.AddCommand(workloadListCommand(), workloadShowCommand(), imports)
	return c
}

// writeImported writes a workload's folder, which must not exist yet.
func writeImported(made *phoronix.Imported, inputs, out string) (err error) {
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(out))
		}
	}()
	for name, text := range made.Files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	for _, name := range made.Inputs {
		if err := copyFile(filepath.Join(inputs, name), filepath.Join(out, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
