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
		Short: "Make a disk image that runs a study wherever it is booted",
		Long: `Makes a disk image (qcow2) with Debian, Tare, a study and all that its workloads need. It boots on any x86_64 machine with 2 GB
of memory or more, physical or virtual, by BIOS or UEFI. It needs no network and nobody at its keyboard: it runs the study,
prints what it found on the screen and the serial port, keeps the results folder on its own disk, and switches the machine
off. tare image results reads that folder from the disk. What is bare metal to the study is the machine that was booted.`,
		Example: `  sudo tare image --study cloud-benchmarking --out suite.qcow2
  qemu-system-x86_64 -accel kvm -smp 4 -m 8G -nographic -drive file=suite.qcow2,if=virtio
  tare image results suite.qcow2 --out R && tare summary R`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("image: unknown argument %q: --study STUDY --out FILE was expected, or tare image results", args[0])
			}
			if err := notEmpty(c, "study", "out"); err != nil {
				return err
			}
			if name == "" || out == "" {
				return errors.New("image: --study STUDY and --out FILE were expected")
			}
			spec, err := studyfile.Load(studies.FS, name, session.Known)
			if err != nil {
				return err
			}
			if _, err := spec.Needs(workloads.FS); err != nil { // before the host is taken
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
			fmt.Printf("%s runs the study %s wherever it is booted, as by\n  qemu-system-x86_64 -accel kvm -smp 4 -m 8G -nographic -drive file=%s,if=virtio\n", out, spec.Name, out)
			return nil
		},
	}
	c.Flags().StringVar(&name, "study", "", "study to run: a shipped one, or a file of your own with shipped workloads")
	c.Flags().StringVar(&out, "out", "", "`FILE` to make")
	var folder string
	results := &cobra.Command{
		Use: "results FILE --out R", Short: "Read the results folder that such an image has kept",
		Long:    "Writes the results folder that a suite has kept on its disk to a folder, which the commands that read results take.",
		Example: "  tare image results suite.qcow2 --out R && tare summary R",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || folder == "" {
				return errors.New("image results: a suite's disk image and --out R were expected")
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
