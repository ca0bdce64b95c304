package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/lab/workload"
)

func benchCommand() *cobra.Command {
	var r running
	var image, platforms, instances string
	var service int
	var load, objective, neighbours string
	var metrics, devices []string
	c := &cobra.Command{
		Use:   "bench [flags] -- CMD ARG…",
		Short: "Run your own command, from your own image, on every platform",
		Long: `Runs your command on every platform, from the same image, and reports each platform's overhead. The image is a registry
reference, an OCI layout folder, an archive made by "docker save", or an image of the Docker daemon; without --image it
is a plain Debian root. The command is looked up in the image. Its working directory is the image's, or else an empty
writable folder ({scratch}); on bare metal everything else is read-only. In the command, {input} stands for the file that
--input names, {work} for the folder of the workload's files, {cores} and {memory} for the guest's size. Any other {word}
is left as it is.

With --metric NAME=EXPRESSION,UNIT,higher Tare compares a number that the command prints, instead of its time. The last word is
higher or lower, whichever is better, or none where neither is, as of a number of CPUs. The first group of the regular
expression (RE2; ^ and $ are a line's) is the number; its last match on the standard output counts. Of several metrics, which
each have a table, the first is the one by which platforms are ranked.

With --service PORT the command, or the image's own, is a service, and what is measured is its capacity: requests are sent
at a rate that is raised step by step until they miss the --objective. --load is the path of a page, asked for over HTTP,
or a command of the image that sends {rate} requests a second for {seconds} to {address} and {port} and prints, as its last
line, a JSON object with mean and p99 in seconds, requests_per_second and errors.`,
		Example: `  sudo tare bench -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
  sudo tare bench --image ./my-oci-layout --platforms bm,cn --instances large,0.5/1GB -- /app/work
  sudo tare bench --image ./stream --metric 'triad=^Triad: +([0-9.]+),MB/s,higher' -- /stream
  sudo tare bench --image ./cuda --device nvidia.com/gpu=0 --platforms bm,cn -- /app/train
  sudo tare bench --image nginx:alpine --service 80 --load / --objective p99=50ms
  sudo tare bench --image ffmpeg.tar --input film.mp4 -- ffmpeg -v error -i {input} -c:v libx265 {scratch}/out.mp4`,
		RunE: func(c *cobra.Command, argv []string) error {
			if err := r.check(c); err != nil {
				return err
			}
			if len(argv) == 0 && image == "" {
				return errors.New("bench: a command was expected: tare bench [flags] -- CMD ARG…")
			}
			if service == 0 && (load != "" || c.Flags().Changed("objective") || c.Flags().Changed("service")) {
				return errors.New("bench: --load and --objective are of a service: the port on which it listens was expected, with --service PORT")
			}
			use := studyfile.Use{Name: "command", Image: image, Command: argv, Devices: devices}
			for _, text := range metrics {
				m, err := workload.ParseMetric(text)
				if err != nil {
					return fmt.Errorf("--metric %w", err)
				}
				use.Metrics = append(use.Metrics, m)
			}
			if service != 0 {
				use.Name, use.Port, use.Ask = "service", service, strings.Fields(load)
			}
			beside, err := studyfile.ParseNeighbours(neighbours)
			if err != nil {
				return fmt.Errorf("--neighbours: %w", err)
			}
			if neighbours == "none" {
				beside = nil
			}
			spec, err := benchSpec(use, platforms, instances, r.input, objective, beside)
			if err != nil {
				return err
			}
			return r.run(c.Context(), spec, nil, c.Flags().Changed("seed"))
		},
	}
	r.flags(c)
	c.Flags().StringVar(&image, "image", "", "registry reference, OCI layout folder, docker save archive, or image of the Docker daemon")
	c.Flags().StringArrayVar(&metrics, "metric", nil, "compare a number that the command prints: `NAME=EXPRESSION,UNIT,higher`, or lower, whichever is better, or none where neither is; the first group of the regular expression is the number (again for more metrics)")
	c.Flags().StringArrayVar(&devices, "device", nil, "give every guest this device of the host, `NAME` as CDI has it: nvidia.com/gpu=0 (again for more devices)")
	c.Flags().IntVar(&service, "service", 0, "the command, or the image's own, is a service that listens on this `PORT`: seek its capacity")
	c.Flags().StringVar(&load, "load", "", "what asks the service: the path of a page (/), or a `COMMAND` with {rate}, {seconds}, {address} and {port} in it")
	c.Flags().StringVar(&objective, "objective", "p99=100ms", "what the service must meet: `METRIC=TIME`, of the figures that its load prints")
	c.Flags().StringVar(&neighbours, "neighbours", "none", "guests that are busy beside the measured one: `LIST` of none, cpu:1, io:2, cpu:1+io:1, or of as many as fill the host, cpu:4/core; each is compared")
	c.Flags().StringVar(&platforms, "platforms", "bm,cn,vm,vmcn", "platforms, of bm, cn, vm, vmcn; an engine may be named: cn:crun")
	c.Flags().StringVar(&instances, "instances", "1/1GB", "instance types: large, xlarge, … or cores/memory such as 0.5/1GB")
	return c
}

// benchSpec is the study of the user's own command.
func benchSpec(use studyfile.Use, platforms, instances, input, objective string, neighbours studyfile.Neighbours) (*studyfile.Spec, error) {
	if input == "" && strings.Contains(strings.Join(use.Command, " "), "{input}") {
		return nil, errors.New("the command uses {input}: name the file with --input FILE")
	}
	if input != "" {
		use.Input = "input" + filepath.Ext(input)
		for i, a := range use.Command {
			use.Command[i] = strings.ReplaceAll(a, "{input}", "{work}/"+use.Input)
		}
	}
	spec := &studyfile.Spec{
		Name: "bench", Title: "Your own command", AllowEmulation: true, Workloads: []studyfile.Use{use}, Neighbours: neighbours,
		Design: studyfile.Design{Rounds: studyfile.Rounds{Floor: 5, Cap: 20, Emulated: 1}, Precision: "2%", Trials: 1, Warmups: 1, Timeout: "30m"},
	}
	if use.Port != 0 {
		spec.Title = "Your own service"
		if err := spec.Measure("capacity", map[string]string{"objective": objective}); err != nil {
			return nil, err
		}
		spec.Design.Rounds = studyfile.Rounds{Floor: 3, Cap: 10, Emulated: 1}
	}
	for _, p := range strings.Split(platforms, ",") {
		name, engine, named := strings.Cut(p, ":")
		place := studyfile.Place{Platform: name}
		if named {
			place.Engines = []string{engine}
		} else if usual := session.Engines.Usual(name); len(usual) > 1 {
			place.Engines = []string{strings.Join(usual, "|")} // the first that the host can do
		}
		spec.Platforms = append(spec.Platforms, place)
	}
	spec.Instances = strings.Split(instances, ",")
	return spec, spec.Complete(session.Known)
}
