package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/term"

	"tare/desk/advise"
	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/fleet"
	"tare/desk/page"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook"
)

// manyFolders are the results folders in the folder of a fleet, or in any other folder of results folders. nil: the arguments are not one such folder.
func manyFolders(dirs []string) ([]string, error) {
	if len(dirs) != 1 {
		return nil, nil
	}
	many, err := notebook.Folders(dirs[0])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // reading it as results says what is wrong
		return nil, nil
	}
	if err != nil || many != nil || notebook.Exists(dirs[0]) {
		return many, err
	}
	if _, err := notebook.ReadFleet(dirs[0]); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: no node of this fleet has results yet; `tare fleet status %s` shows its tasks", dirs[0], dirs[0])
		}
		return nil, err
	}
	return nil, nil
}

// summarizeFleet reads the folders of many hosts, and prints their combined answer.
func summarizeFleet(dirs []string, opt data.Options, format string, shown details) error {
	f, err := fleet.Read(dirs, opt)
	if err != nil {
		return err
	}
	switch format {
	case "openmetrics":
		return errors.New("--format openmetrics: not available for a fleet; use tare summary on the results folder of each node")
	case "json":
		return export.Fleet(os.Stdout, f)
	case "csv":
		return export.FleetTable(os.Stdout, f, term.IsTerminal(int(os.Stdout.Fd())))
	}
	return terminal.Fleet(os.Stdout, f, shown.emulated || shown.everything, screen(os.Stdout))
}

// reportFleet writes the report of the folders of many hosts.
func reportFleet(dirs []string, out string, opt data.Options) error {
	f, err := fleet.Read(dirs, opt)
	if err != nil {
		return err
	}
	first, err := data.Read(f.Hosts[0].Folders, opt) // its study names the claims, as those of the others do
	if err != nil {
		return err
	}
	var judged []fleet.Claimed
	if nameClaims(first) {
		about, err := claims.About(first)
		if err != nil {
			return err
		}
		bare := opt
		bare.Baseline = bareMetal
		judged = f.Judge(about, bare)
	}
	files, err := page.WriteFleet(f, out, judged)
	for _, file := range files {
		fmt.Println(file)
	}
	return err
}

// skipped names on standard error a folder of a fleet that cannot be read, or not to its end.
func skipped(rows int, err error) {
	said := "left out"
	if rows > 0 {
		said = "only the first " + words.Count(rows, "run") + " of a folder written"
	}
	fmt.Fprintf(os.Stderr, "tare: %s: %s\n", said, words.Plain(err.Error()))
}

// judgeFleet tests claims on each host of a fleet, and prints on how many each holds. If the user named no claims and none is about the results, it
// says which studies have claims.
func judgeFleet(f *fleet.Fleet, all []claims.Claim, opt data.Options, format string, asked bool) error {
	judged := f.Judge(all, opt)
	if format == "json" {
		return export.FleetClaims(os.Stdout, f, judged)
	}
	if !asked && !slices.ContainsFunc(judged, func(c fleet.Claimed) bool { return c.Concerns }) {
		return terminal.NoClaims(os.Stdout, studiesWithClaims(), screen(os.Stdout))
	}
	return terminal.FleetClaims(os.Stdout, f, judged, screen(os.Stdout))
}

// adviseFleet prints on how many hosts each choice is recommended.
func adviseFleet(dirs []string, o advise.Options, opt data.Options, format string) error {
	if format != "text" && format != "json" || o.Objective != nil {
		return fmt.Errorf("advise: of many hosts only the rankings are counted: use --format text or json and no --objective, or name the results of one node, such as %s", dirs[0])
	}
	f, err := fleet.Read(dirs, opt)
	if err != nil {
		return err
	}
	all, err := f.Advise(o, opt)
	if err != nil {
		return err
	}
	if format == "json" {
		return export.FleetAdvice(os.Stdout, all)
	}
	return terminal.FleetAdvice(os.Stdout, all, screen(os.Stdout))
}

// oneHost refuses the folder of a fleet for a command that reads one host.
func oneHost(command string, dirs []string) error {
	many, err := manyFolders(dirs)
	if err != nil || many == nil {
		return err
	}
	return fmt.Errorf("%s: %s holds the results of %d nodes, but this command reads one host: name one results folder, such as %s, or use `tare summary %s`",
		command, dirs[0], len(many), many[0], dirs[0])
}
