package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/lab/origin"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/yamlfile"
)

// benching holds the flags of bench.
type benching struct {
	running
	image                                             string
	container, compose, serves                        string
	service                                           int // the port
	rate                                              int
	argv                                              bool // the user gave a command
	load, objective, neighbours                       string
	prepare                                           string
	method, body                                      string
	metrics, devices, env, envFiles, headers, volumes []string
	set                                               func(flag string) bool // whether the user gave the flag
}

func benchCommand() *cobra.Command {
	var b benching
	c := &cobra.Command{
		Use:   "bench [flags] -- CMD ARG…",
		Short: "Run your own command, from your own image, on every platform",
		Long: `Runs your command on every platform, from the same image, and reports each platform's overhead. The image is a registry
reference, an OCI layout folder, an archive made by "docker save", or an image of the Docker daemon. Without --image it
is a plain Debian root filesystem. The command must be in the image. It runs in the working directory of the image. If the
image has none, it runs in an empty writable folder ({scratch}). On bare metal all other folders are read-only. In the
command, {input} is the file that --input names, {work} is the folder of the workload's files, and {cores} and {memory} are
the size. Tare does not change any other {word}.

With --metric NAME=EXPRESSION,UNIT,higher Tare compares a number that the command prints, instead of its time. The last word
says which value is better: higher, lower, or none (for example for a count of CPUs). The number is the first group of the
regular expression (RE2; ^ and $ match at each line). The last match on standard output counts. Each metric has a table. The
first metric ranks the platforms.

With --service PORT the command, or the command of the image, is a service. Tare measures its capacity: it raises the request
rate step by step until the service misses the --objective. --load is the path of a page, requested over HTTP, or a command
of the image. The command sends {rate} requests a second for {seconds} to {address} and {port}. Its last line is a JSON
object with mean and p99 in seconds, requests_per_second and errors. With --rate N Tare sends N requests a second and
measures the response time. The mean ranks the platforms, and a second table has the percentiles. With --metric the load is
a command that prints the number. Without --rate this command decides how long it runs, so it needs no {rate} and {seconds}.
Tare also repeats the command until it succeeds, to find out when the service is ready.

Tare splits --load and --prepare into words as a shell does, at blanks, quotes and backslashes. It expands nothing: for pipes
and variables write sh -c '…'. The results folder records the values of --env, including secrets.

--from-container takes the image, command, environment, mounts, folder, user and limits of a running or stopped Docker
container. --compose FILE --service NAME takes them from a Compose file. Flags take precedence. Tare prints a line for each
setting that it cannot take over. docs/bench.md shows a complete service, step by step.`,
		Example: `  sudo tare bench -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
  sudo tare bench --image ./my-oci-layout --platforms bm,cn --size large,0.5/1GB -- /app/work
  sudo tare bench --image ./stream --metric 'triad=^Triad: +([0-9.]+),MB/s,higher' -- /stream
  sudo tare bench --image ./cuda --device nvidia.com/gpu=0 --platforms bm,cn -- /app/train
  sudo tare bench --image nginx:alpine --service 80 --load / --objective p99=50ms
  sudo tare bench --image nginx:alpine --service 80 --load / --rate 200
  sudo tare bench --image ./db.tar --service 5432 \
    --load 'pgbench -h {address} -p {port} -T 1' --metric 'tps=^tps = ([0-9.]+),1/s,higher'
  sudo tare bench --image ./web --env-file web.env --network bridge,host --provisioning set --service 8080 --load /
  sudo tare bench --from-container web --platforms bm,cn:docker --load /
  sudo tare bench --compose compose.yaml --service web --platforms bm,cn:docker --load /
  sudo tare bench --image ffmpeg.tar --input film.mp4 -- ffmpeg -v error -i {input} -c:v libx265 {scratch}/out.mp4`,
		RunE: func(c *cobra.Command, argv []string) error {
			b.set = c.Flags().Changed
			if err := b.check(c); err != nil {
				return err
			}
			spec, err := b.spec(c.Context(), argv)
			if err != nil {
				return err
			}
			return b.run(c.Context(), spec, b.set("seed"))
		},
	}
	b.flags(c)
	return c
}

func (b *benching) flags(c *cobra.Command) {
	b.running.flags(c, "bm,cn,vm,vmcn", "1/1GB")
	b.timing(c)
	f := c.Flags()
	b.origins(f)
	f.StringVar(&b.container, "from-container", "", "measure what the Docker container `NAME` runs, with its image and settings")
	f.StringVar(&b.compose, "compose", "", "measure a service of this Compose `FILE`; --service names it")
	f.StringArrayVar(&b.metrics, "metric", nil, "compare a printed number, not the time: `NAME=EXPRESSION,UNIT,higher`, or lower, or none (repeatable)")
	f.StringArrayVar(&b.devices, "device", nil, "give every run this host device, by its CDI `NAME`: nvidia.com/gpu=0 (repeatable)")
	f.StringVar(&b.method, "method", "", "HTTP method: `METHOD`, one of "+strings.Join(studyfile.Methods, ", ")+" (default GET, or POST with --body)")
	f.StringArrayVar(&b.headers, "header", nil, "HTTP header to send: `'NAME: VALUE'`; recorded in the results (repeatable)")
	f.StringVar(&b.body, "body", "", "body of the HTTP request: `TEXT`, or @FILE; at most 1 MiB")
	f.StringVar(&b.objective, "objective", "p99=100ms", "what the service must meet: `METRIC=TIME`, a metric that its load prints")
	f.StringVar(&b.neighbours, "neighbours", "none", "busy neighbours to compare: `LIST` of none, cpu:1, io:2, cpu:1+io:1, or cpu:4/core to fill the host")
}

// origins defines the flags that say what runs.
func (b *benching) origins(f *pflag.FlagSet) {
	f.StringVar(&b.image, "image", "", "registry reference, OCI layout folder, docker save archive, or Docker daemon image")
	f.StringArrayVar(&b.env, "env", nil, "environment variable: `KEY=VALUE`, or KEY for your own value; recorded in the results (repeatable)")
	f.StringArrayVar(&b.envFiles, "env-file", nil, "read variables from `FILE`, in the format of docker run --env-file (repeatable)")
	f.StringArrayVar(&b.volumes, "volume", nil, "copy a host folder or file into every run: `HOST:GUEST`; the original never changes (repeatable)")
	f.StringVar(&b.prepare, "prepare", "", "`COMMAND` to run, unmeasured, before each run or before a service starts")
	f.StringVar(&b.serves, "service", "", "measure a service that listens on this `PORT`; with --compose its name, or NAME:PORT")
	f.StringVar(&b.load, "load", "", "load to send: an HTTP path (/), or a `COMMAND` with {rate}, {seconds}, {address} and {port}")
	f.IntVar(&b.rate, "rate", 0, "send this many requests a second and measure response times, not the capacity")
}

// spec makes the study of the user's own command.
func (b *benching) spec(ctx context.Context, argv []string) (*studyfile.Spec, error) {
	b.argv = len(argv) > 0
	use, err := b.use(ctx, argv)
	if err != nil {
		return nil, err
	}
	beside, err := studyfile.ParseNeighbours(b.neighbours)
	if err != nil {
		return nil, fmt.Errorf("--neighbours: %w", err)
	}
	if b.neighbours == "none" {
		beside = nil
	}
	spec := &studyfile.Spec{
		Name: "bench", Title: "Your own command", AllowEmulation: true, Workloads: []studyfile.Use{*use}, Neighbours: beside,
		Design: studyfile.Design{Rounds: studyfile.Rounds{Floor: 5, Cap: 20, Emulated: 1}, Precision: "2%", Trials: 1, Warmups: 1, Timeout: "30m"},
	}
	switch {
	case use.Port != 0 && b.load == "":
		return nil, errors.New("--service: needs --load, the path of a page such as / or a command of the image")
	case use.Port != 0:
		if err := b.serve(spec); err != nil {
			return nil, asUse(err)
		}
	case len(b.kernels) > 1:
		b.ofKernels(spec)
	}
	return spec, b.complete(spec)
}

// fills says whether the study has as many rounds as fit into a time budget: one is given, and no rule that ends the run.
func (b *benching) fills() bool {
	return b.set("time-budget") && !b.set("precision") && !b.set("decide") && !b.set("until")
}

// ofKernels has VMs of two kernels run the command several times each, because a VM takes long to start. With a time budget the study has
// as many rounds as fit into it.
func (b *benching) ofKernels(spec *studyfile.Spec) {
	spec.Design.Trials, spec.Design.Margin = 10, "5%"
	if b.fills() {
		spec.Design.Rounds.Cap = studyfile.UntilRounds
	}
}

// serve makes the study one of a service: of its response times at a rate, of what its load prints, or of its capacity. Looking after each
// of a few long rounds would make intervals several times as wide, so the number of rounds is fixed: by default so that bare metal and one
// container take less than 3 minutes on two cores, and with a time budget as many as fit into it.
func (b *benching) serve(spec *studyfile.Spec) error {
	spec.Title = "Your own service"
	rounds := 5
	switch {
	case b.set("rate") && b.set("objective"):
		return errors.New("bench: --rate measures response times, and --objective seeks a capacity: give only one of them")
	case len(b.metrics) > 0 && b.set("objective"):
		return errors.New("bench: --metric compares what the load prints, and --objective seeks a capacity: give only one of them")
	case b.set("rate") && b.rate < 1:
		return fmt.Errorf("--rate %d: must be at least 1 request a second", b.rate)
	case b.set("rate"):
		rounds, spec.Design.Trials = 10, studyfile.RateTrials(b.rate)
	case len(b.metrics) > 0:
		spec.Design.Trials = 2
	default: // a step holds its rate so shortly that guests take turns often
		rounds = 6
		if err := spec.Measure("capacity", map[string]string{"objective": b.objective, "hold": "1s"}); err != nil {
			return err
		}
	}
	if b.fills() {
		rounds = studyfile.UntilRounds
	}
	spec.Design.Rounds, spec.Design.Precision, spec.Design.Margin = studyfile.Rounds{Floor: rounds, Cap: rounds, Emulated: 1}, "", "5%"
	return nil
}

// use makes the workload from the measured command or service.
func (b *benching) use(ctx context.Context, argv []string) (*studyfile.Use, error) {
	of, err := b.origin(ctx)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 && b.image == "" && of == nil {
		return nil, asUse(errors.New("bench: names no command: write tare bench [flags] -- CMD ARG…, or name an --image"))
	}
	use := &studyfile.Use{Name: "command", Image: b.image, Command: argv, Devices: b.devices}
	if use.Env, err = b.environment(); err != nil {
		return nil, err
	}
	if of != nil {
		left, err := b.adopt(of, use)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		for _, line := range append([]string{taken(of)}, left...) {
			fmt.Fprintf(os.Stderr, "%s: %s\n", plain(of.Name), plain(line))
		}
	}
	for _, flag := range []string{"load", "objective", "rate", "service", "method", "header", "body"} {
		if b.service == 0 && b.set(flag) && (flag != "service" || b.compose == "") {
			return nil, asUse(fmt.Errorf("bench: --%s is for a service: name the port on which it listens with --service PORT", flag))
		}
	}
	if err := b.give(use); err != nil {
		return nil, err
	}
	for _, text := range b.metrics {
		m, err := workload.ParseMetric(text)
		if err != nil {
			return nil, fmt.Errorf("--metric %w", err)
		}
		use.Metrics = append(use.Metrics, m)
	}
	return use, b.put(use)
}

// give reads what the command gets in addition to its image.
func (b *benching) give(use *studyfile.Use) (err error) {
	for _, text := range b.volumes {
		use.Volumes = append(use.Volumes, strings.TrimSuffix(text, ":ro")) // :ro changes nothing: the host's files are never written to
	}
	if use.Prepare, err = shellWords("prepare", b.prepare); err != nil {
		return err
	}
	if b.set("prepare") && len(use.Prepare) == 0 {
		return errors.New("--prepare: is empty: write a command, such as 'sh -c \"…\"'")
	}
	if b.service == 0 {
		return nil
	}
	use.Name, use.Port = "service", b.service
	use.Request, use.Rate = b.request(), b.rate
	use.Ask, err = shellWords("load", b.load)
	return err
}

// request is the HTTP request that the flags describe; nil where no flag does.
func (b *benching) request() *studyfile.Request {
	if !b.set("method") && !b.set("body") && len(b.headers) == 0 {
		return nil
	}
	r := &studyfile.Request{Method: b.method, Headers: b.headers}
	if file, ok := strings.CutPrefix(b.body, "@"); ok {
		r.BodyFile = file
	} else {
		r.Body = b.body
	}
	return r
}

// shellWords splits the value of a flag as a shell does.
func shellWords(flag, text string) ([]string, error) {
	all, err := origin.Words(text)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return all, nil
}

// environment reads --env-file and --env. --env takes precedence.
func (b *benching) environment() (env []string, err error) {
	for _, file := range b.envFiles {
		text, err := yamlfile.Read(file)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		of, err := origin.ParseEnvFile(string(text), os.LookupEnv)
		if err != nil {
			return nil, fmt.Errorf("--env-file %s:%w", file, err)
		}
		env = append(env, of...)
	}
	for _, text := range b.env {
		kv, set, err := origin.Variable(text, os.LookupEnv)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--env %w", err)
		case !set:
			return nil, fmt.Errorf("--env %s: your environment has no such variable (sudo removes most); write %s=VALUE", text, text)
		}
		env = append(env, kv)
	}
	return origin.Merge(env), nil
}

// put replaces {input} in the command by the path of --input.
func (b *benching) put(use *studyfile.Use) error {
	if b.input == "" && strings.Contains(strings.Join(use.Command, " "), "{input}") {
		return errors.New("the command uses {input}: name the file with --input FILE")
	}
	if b.input == "" {
		return nil
	}
	use.Input = "input" + filepath.Ext(b.input)
	for i, a := range use.Command {
		use.Command[i] = strings.ReplaceAll(a, "{input}", "{work}/"+use.Input)
	}
	return nil
}
