package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/schemas"
)

func schemaCommand() *cobra.Command {
	names := []string{"study", "workload", "claims", "summary", "fleet"}
	return &cobra.Command{Use: "schema study|workload|claims|summary|fleet", Short: "Print the JSON schema of a file format, for editors and programs",
		Long: `Prints a JSON schema (draft 2020-12) of study files, workload.yaml or claims files, as this version of Tare reads them, or
of the output of summary --format json. For a fleet, this output has the schema fleet.

With the schema, an editor completes keys and values, explains them, and marks mistakes. Editors with the YAML language server
find the schema by a line in the file: # yaml-language-server: $schema=study.json`,
		Example: "  tare schema study >study.json\n  tare schema summary >summary.json", ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(names, args[0]) {
				return asUse(fmt.Errorf("schema %q: must be one of %s", strings.Join(args, " "), strings.Join(names, ", ")))
			}
			text, err := fs.ReadFile(schemas.FS, args[0]+".json")
			if err == nil {
				_, err = os.Stdout.Write(text)
			}
			return err
		}}
}
