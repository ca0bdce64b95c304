package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/desk/data"
	"tare/desk/predict"
	"tare/desk/words"
	"tare/lab/host"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
)

// measuring is predict with what it needs to run or observe the work first.
type measuring struct {
	predicting
	benching
	work      string
	container string
	time      time.Duration
}

// predictCommand is predict, with the flags that run the work on bare metal, or observe it, first.
func predictCommand() *cobra.Command {
	var m measuring
	c := predictDesk(&m.predicting)
	c.Use += " [flags] [-- CMD ARG…]"
	c.Long += `

Tare runs --workload NAME, or a command after --, on bare metal here, with and without tracers, and then predicts it. --image,
--service and their flags work as in tare bench. --from-container observes a running Docker container and does not change it.
The predictions are then relative to Docker.`
	c.Example = `  sudo tare run calibration --out C
  tare predict C
  tare predict C --of R
  sudo tare predict C --workload nginx
  sudo tare predict C --image ./my-oci-layout -- /app/work
  sudo tare predict C --from-container web --for 30s`
	c.Args = func(c *cobra.Command, args []string) error {
		m.calibration = args
		if n := c.ArgsLenAtDash(); n >= 0 {
			m.calibration = args[:n]
		}
		return folders(c, m.calibration)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		m.set = c.Flags().Changed
		m.predicting.format = m.benching.format
		return m.run(c, args[len(m.calibration):])
	}
	f := c.Flags()
	m.origins(f)
	f.StringVar(&m.work, "workload", "", "`WORKLOAD` to predict: its name (tare workload list), or a folder")
	f.StringVar(&m.container, "from-container", "", "observe the running Docker container `NAME` and predict its work")
	f.DurationVar(&m.time, "for", 30*time.Second, "with --from-container: observe for this `TIME`, from 1s to 4h")
	f.StringVar(&m.sizes, "size", "1/4GB", "size on bare metal: CPUs/memory, as in the calibration")
	f.StringVar(&m.input, "input", "", "input file, instead of the workload's own")
	f.StringVar(&m.out, "out", "", "results folder; continues an unfinished run (default tare-predict-TIME)")
	f.IntVar(&m.rounds, "rounds", 3, "run exactly this many rounds")
	f.BoolVarP(&m.silent, "silent", "q", false, "print the answer, warnings and errors, but no progress")
	f.StringVar(&m.benching.format, "format", "table", "output format: table or json")
	suggest(c, "format", outputs...)
	return c
}

// run predicts what the flags name.
func (m *measuring) run(c *cobra.Command, command []string) error {
	var given []string
	for _, flag := range []string{"of", "workload", "image", "from-container"} {
		if m.set(flag) {
			given = append(given, "--"+flag)
		}
	}
	if len(command) > 0 && !m.set("image") {
		given = append(given, "a command")
	}
	switch {
	case len(given) > 1:
		return asUse(fmt.Errorf("predict: %s: name one thing to predict", strings.Join(given, " and ")))
	case m.set("service") && !m.set("image"):
		return errors.New("--service: needs --image, the image of the service")
	case m.set("for") && !m.set("from-container"):
		return errors.New("--for: needs --from-container, which is what is observed")
	}
	if err := notEmpty(c, "of", "workload", "image", "from-container"); err != nil {
		return err
	}
	if err := m.unused(given); err != nil {
		return err
	}
	if err := oneOf("--format", m.benching.format, outputs...); err != nil {
		return err
	}
	if len(given) == 0 || m.of != "" {
		return m.answer()
	}
	calibration, err := m.calibrated()
	if err != nil {
		return err
	}
	if m.set("from-container") {
		return m.observe(c.Context(), calibration)
	}
	return m.measure(c, calibration, command)
}

// unused refuses flags that would have no effect on what is predicted.
func (m *measuring) unused(given []string) error {
	runs, own := false, false
	for _, g := range given {
		runs = runs || g == "--workload" || g == "--image" || g == "a command"
		own = own || g == "--image" || g == "a command"
	}
	for _, f := range []struct {
		names []string
		used  bool
		needs string
	}{
		{[]string{"size", "rounds", "input", "out"}, runs, "--workload, --image or a command, which run here"},
		{[]string{"env", "env-file", "volume", "prepare", "load", "rate"}, own, "--image or a command"},
		{[]string{"verbose"}, len(given) == 0, "no run: it lists the left-out workloads"},
	} {
		for _, name := range f.names {
			if m.set(name) && !f.used {
				return fmt.Errorf("--%s: needs %s", name, f.needs)
			}
		}
	}
	return nil
}

// measure runs the work on bare metal and prints what is predicted of it.
func (m *measuring) measure(c *cobra.Command, calibration *predict.Calibration, command []string) error {
	m.accel, m.platforms, m.explain = "auto", notebook.BM, strings.Join(predict.Tracers, ",")
	if err := m.check(c); err != nil {
		return err
	}
	m.tell = func(s *data.Summary) error { return m.forecast(calibration, s) }
	spec := &studyfile.Spec{
		Name: "predict", Title: "What is predicted", Workloads: []studyfile.Use{{Name: m.work}},
		Design: studyfile.Design{Rounds: studyfile.Rounds{Floor: m.rounds, Cap: m.rounds}, Trials: 1, Warmups: 1, Timeout: "30m"},
	}
	if m.work == "" {
		m.argv = len(command) > 0
		use, err := m.use(c.Context(), command)
		if err != nil {
			return err
		}
		if use.Port != 0 && m.load == "" {
			return errors.New("--service: needs --load, the path of a page such as / or a command of the image")
		}
		spec.Workloads = []studyfile.Use{*use}
	}
	if err := m.complete(spec); err != nil {
		return err
	}
	return m.benching.run(c.Context(), spec, false)
}

// observe observes the container and prints what is predicted of it.
func (m *measuring) observe(ctx context.Context, calibration *predict.Calibration) error {
	if err := session.Permitted(); err != nil {
		return err
	}
	here, err := host.Inspect(ctx)
	if err != nil {
		return err
	}
	engine, provisioning, cores, err := engineOf(ctx, m.container)
	if err != nil {
		return err
	}
	watching := observing{time: m.time, calls: true}
	target, err := watching.find(ctx, []string{m.container})
	if err != nil {
		return err
	}
	seen, err := watching.once(ctx, target)
	if err != nil {
		return err
	}
	if seen.Cut {
		return exit(interrupted)
	}
	if seen.Tier != notebook.TierEvents {
		return fmt.Errorf("--from-container: this host cannot count what a container does: %s", strings.Join(words.MessagesOf(seen.Said), "; "))
	}
	all, err := calibration.Observed(seen, engine, provisioning, cores, here)
	if err != nil {
		return err
	}
	return m.show(all)
}

// sandboxes are the runtimes of Docker whose system calls the host does not see.
var sandboxes = []string{"runsc", "kata", "kata-runtime", "io.containerd.kata.v2", "io.containerd.runsc.v1"}

// engineOf is the engine of a Docker container, how its CPUs are limited, and to how many; 0: they are not.
func engineOf(ctx context.Context, name string) (engine, provisioning string, cores float64, err error) {
	o, err := fromContainer(ctx, name)
	if err != nil {
		return "", "", 0, err
	}
	if slices.Contains(sandboxes, o.Runtime) {
		return "", "", 0, fmt.Errorf("--from-container %s: its runtime is %s, of which the host does not see the system calls: predict from a container of runc", name, o.Runtime)
	}
	cpus, err := notebook.ParseCPUList(o.CPUSet)
	if err != nil {
		return "", "", 0, fmt.Errorf("--from-container %s: CPU set %.100q: %w", name, o.CPUSet, err)
	}
	if len(cpus) > 0 {
		return "docker", notebook.Pinned, float64(len(cpus)), nil
	}
	return "docker", notebook.Vanilla, o.Cores, nil
}
