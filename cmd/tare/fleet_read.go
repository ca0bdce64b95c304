package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/term"

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

// summarizeFleet reads the folders of many hosts, and prints what they say together.
func summarizeFleet(dirs []string, opt data.Options, format string, shown details) error {
	f, err := fleet.Read(dirs, opt)
	if err != nil {
		return err
	}
	switch format {
	case "openmetrics":
		return errors.New("--format openmetrics is for one result or a history; tare summary of each node's folder gives its metrics")
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
	files, err := page.WriteFleet(f, out, nil)
	for _, file := range files {
		fmt.Println(file)
	}
	return err
}

// skipped names a folder of a fleet that cannot be read, on standard error.
func skipped(err error) { fmt.Fprintln(os.Stderr, "tare: left out: "+words.Plain(err.Error())) }
