package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/lab/suite"
	"tare/studies"
	"tare/workloads"
)

func imageCommand() *cobra.Command {
	var name, out string
	c := &cobra.Command{
		Use:   "image --study STUDY --out FILE",
		Short: "Make a disk image that boots a machine and runs a study",
		Long: `Makes a disk image (qcow2) with Debian, Tare, a study and everything that its workloads need. The image boots any x86_64
machine with at least 2 GB of memory, physical or virtual, by BIOS or UEFI. It needs no network and no keyboard. It runs the
study and prints the result on the screen and the serial port. It keeps the results folder on its disk and switches the
machine off. tare image results reads this folder from the disk. In the study, the booted machine is bare metal.`,
		Example: `  sudo tare image --study cloud-benchmarking --out suite.qcow2
  qemu-system-x86_64 -accel kvm -smp 4 -m 8G -nographic -drive file=suite.qcow2,if=virtio
  tare image results suite.qcow2 --out R && tare summary R`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("image: unknown argument %q: write tare image --study STUDY --out FILE, or tare image results", args[0])
			}
			if err := notEmpty(c, "study", "out"); err != nil {
				return err
			}
			if name == "" || out == "" {
				return errors.New("image: needs both --study STUDY and --out FILE")
			}
			spec, err := studyfile.Load(studies.FS, name, session.Known)
			if err != nil {
				return err
			}
			if _, err := spec.Needs(workloads.FS); err != nil { // before Tare takes the host's lock
				return err
			}
			show := newProgress(os.Stderr)
			defer show.end()
			l, err := session.Open(c.Context(), show.Say)
			if err != nil {
				return err
			}
			shipped := slices.Contains(studyfile.Shipped(studies.FS), name)
			err = errors.Join(l.Suite(c.Context(), spec, shipped, workloads.FS, out), l.Close())
			if err != nil {
				return err
			}
			show.end()
			fmt.Printf("%s runs the study %s on the machine that boots it, for example\n  qemu-system-x86_64 -accel kvm -smp 4 -m 8G -nographic -drive file=%s,if=virtio\n", out, spec.Name, out)
			return nil
		},
	}
	c.Flags().StringVar(&name, "study", "", "study to run: a shipped one, or a file of your own with shipped workloads")
	c.Flags().StringVar(&out, "out", "", "`FILE` to make")
	var folder string
	results := &cobra.Command{
		Use: "results FILE --out R", Short: "Read the results folder from such an image",
		Long:    "Copies the results folder from the disk of a suite to a folder that summary, report and other commands read.",
		Example: "  tare image results suite.qcow2 --out R && tare summary R",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || folder == "" {
				return errors.New("image results: needs a suite's disk image and --out R")
			}
			if err := suite.Results(c.Context(), args[0], folder); err != nil {
				return err
			}
			fmt.Printf("%s has the results: tare summary %s, tare report %s\n", folder, folder, folder)
			return nil
		},
	}
	results.Flags().StringVar(&folder, "out", "", "folder `R` to make")
	c.AddCommand(results)
	return c
}
