package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/desk/words"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/notebook"
)

// running holds the flags of the commands that measure.
type running struct {
	out, accel, format, input string
	platforms, sizes          string
	networks, provisioning    string
	only                      string
	kept                      studyfile.Only // what only asks for
	kernels                   []string       // files
	explain, from             string
	precision, decide, until  string
	untilClaims               bool
	known                     studyfile.Until // when the run ends, by the four flags above
	tracers                   []string        // what explain names
	seed                      uint64
	rounds                    int
	budget                    time.Duration
	tuneHost, quiet, silent   bool // quiet is the older name of tuneHost
	noHostCode, plan          bool
	against                   reference
	reading                   data.Options              // how the results are read, by against
	since                     string                    // earlier results folder that the run is compared with
	host                      string                    // file that names recorded
	recorded                  *notebook.Host            // host for which plan plans; nil: this one
	tell                      func(*data.Summary) error // prints the answer; nil: the summary
}

// olderNames are flags by another name or spelling.
var olderNames = map[string]string{"instances": "size", "neighbors": "neighbours"}

// What --accel and --format allow.
var (
	accelerators = []string{"auto", notebook.KVM, notebook.KVMEmulated, notebook.TCG}
	outputs      = []string{"table", "json"}
)

// flags defines the flags. platforms and sizes are the defaults; "": the study's own.
func (r *running) flags(c *cobra.Command, platforms, sizes string) {
	f := c.Flags()
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(olderNames[name], name))
	})
	usual, limit := "", " (default both)"
	if platforms == "" {
		usual, limit = " (default: the study's)", " (default: the study's)"
	}
	f.StringVar(&r.platforms, "platforms", platforms, "platforms: `LIST` of host, container, vm, vm-container (bm, cn, vm, vmcn); an engine after a colon: cn:crun"+usual)
	f.StringVar(&r.sizes, "size", sizes, "sizes: `LIST` of CPUs/memory such as 0.5/1GB, or names: large, xlarge, …"+usual)
	f.StringVar(&r.networks, "network", "", "networks of containers and VMs to compare: `LIST` of "+strings.Join(notebook.Networks, ", ")+usual)
	f.StringVar(&r.provisioning, "provisioning", "", "CPU limit: quota (as docker run --cpus), set (as --cpuset-cpus), both, or whole (none, with --size host)"+limit)
	f.StringVar(&r.only, "only", "", "keep bare metal and the configurations with these values: KEY=VALUE,… with "+strings.Join(studyfile.OnlyKeys(), ", "))
	f.StringVar(&r.out, "out", "", "results folder; continues an unfinished run of the same study (default tare-STUDY-TIME)")
	f.StringVar(&r.accel, "accel", "auto", "accelerator of VMs: auto, kvm, or an emulation, which is never ranked: kvm-emulated or tcg")
	f.StringArrayVar(&r.kernels, "vm-kernel", nil, "kernel of VMs: `FILE`, a bzImage or vmlinux; given twice, both are compared (default: the study's, else the host's, else Debian's)")
	f.StringVar(&r.format, "format", "table", "output format: table or json")
	suggest(c, "accel", accelerators...)
	suggest(c, "format", outputs...)
	f.StringVar(&r.input, "input", "", "input file, instead of the workload's own")
	f.StringVar(&r.from, "load-from", "", "generate the load of services on another machine, as root by SSH key: `ssh://[USER@]HOST[:PORT]`")
	f.Uint64Var(&r.seed, "seed", 0, "seed for the random order of configurations (default: random, and recorded)")
	f.DurationVar(&r.budget, "time-budget", 0, "time for the runs, such as 10m; their preparation does not count")
	f.BoolVar(&r.noHostCode, "no-host-code", false, "refuse bm and other workload code that would run as root here (docs/security.md)")
	f.BoolVar(&r.plan, "plan", false, "print what the run would do and how long it would take; start nothing")
	f.StringVar(&r.host, "host", "", "with --plan: plan for the host of this `FILE`, host.json of a results folder or the output of tare doctor --format json")
	f.BoolVar(&r.tuneHost, "tune-host", false, "reduce the host's noise during the run (tare doctor --noise); settings are listed, then restored")
	f.BoolVar(&r.quiet, "quiet", false, "the older name of --tune-host")
	f.Lookup("quiet").Hidden = true
	f.BoolVarP(&r.silent, "silent", "q", false, "print the answer, warnings and errors, but no progress")
}

// timing defines the flags of commands that time work: when the run ends, and tracers.
func (r *running) timing(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&r.rounds, "rounds", 0, "run exactly this many rounds (default: as the study says)")
	f.StringVar(&r.precision, "precision", "", "stop when every interval is within ± this `SHARE` of its ratio, such as 1%")
	f.StringVar(&r.decide, "decide", "", "stop when each overhead is shown above, below or within this `MARGIN`: 2%, or the word margin for the study's")
	f.BoolVar(&r.untilClaims, "until-claims", false, "stop when every claim of the study is decided that this host can test")
	f.StringVar(&r.until, "until", "", "the older name of --precision, --decide and --until-claims")
	f.Lookup("until").Hidden = true
	f.StringVar(&r.since, "compare", "", "at the end print what changed since an earlier run of the same study, the results folder `OLD`")
	f.StringVar((*string)(&r.against), "against", "", referenceUsage)
	f.StringVar(&r.explain, "explain", "", "also trace where the time goes, in additional runs: with kernel counters, with every event (--explain="+studyfile.ExplainDeep+
		"), or with `TRACER,...` of "+strings.Join(notebook.TracerNames, ", "))
	f.Lookup("explain").NoOptDefVal = studyfile.ExplainByDefault
}

func (r *running) check(c *cobra.Command) error {
	if err := notEmpty(c, "out", "input", "image", "explain", "precision", "decide", "until", "platforms", "size", "network", "provisioning", "only", "vm-kernel", "load-from", "compare", "against", "host"); err != nil {
		return err
	}
	if c.Flags().Changed("rounds") && r.rounds == 0 {
		return errors.New("--rounds 0: must be at least 1")
	}
	if err := oneOf("--accel", r.accel, accelerators...); err != nil {
		return err
	}
	if r.rounds < 0 || r.rounds > studyfile.MostRounds {
		return fmt.Errorf("--rounds %d: must be from 1 to %d", r.rounds, studyfile.MostRounds)
	}
	if r.budget < 0 {
		return fmt.Errorf("--time-budget %v: must be a positive time, such as 10m", r.budget)
	}
	if r.quiet {
		fmt.Fprintln(c.ErrOrStderr(), "tare: --quiet is now --tune-host, and keeps that meaning until 0.2.0; -q prints no progress")
		r.tuneHost = true
	}
	if err := r.ends(c); err != nil {
		return err
	}
	var err error
	r.reading.Kinds = kinds.All
	if r.reading.Baseline, err = r.against.parse(); err != nil {
		return err
	}
	if r.kept, err = studyfile.ParseOnly(r.only); err != nil {
		return err
	}
	if r.explain != "" {
		if r.tracers, err = studyfile.ParseExplain(r.explain); err != nil {
			return fmt.Errorf("--explain: %w", err)
		}
	}
	if err := r.readHost(); err != nil {
		return err
	}
	return oneOf("--format", r.format, outputs...)
}

// readHost reads the file that --host names.
func (r *running) readHost() error {
	if r.host == "" {
		return nil
	}
	if !r.plan {
		return errors.New("--host: needs --plan: Tare can plan for another host, but measures only this one")
	}
	h, err := notebook.ReadHost(r.host)
	if err != nil {
		return fmt.Errorf("--host: %w", err)
	}
	r.recorded = &h
	return nil
}

// ends reads the flags that say when the run ends.
func (r *running) ends(c *cobra.Command) (err error) {
	var given []string
	for _, name := range []string{"precision", "decide", "until-claims", "until", "rounds"} {
		if c.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("%s: only one of them is allowed", strings.Join(given, " and "))
	}
	switch {
	case r.precision != "":
		r.known, err = studyfile.ParsePrecision(r.precision)
	case r.decide != "":
		r.known, err = studyfile.ParseDecide(r.decide)
	case r.until != "":
		if r.known, err = studyfile.ParseUntil(r.until, session.Known.Kinds); err == nil {
			now := r.known.Flag()
			if r.known.Seeks() {
				now = "tare fit STUDY " + now
			}
			fmt.Fprintf(c.ErrOrStderr(), "tare: --until %s is now %s\n", words.Shell(r.until), now)
		}
	default:
		r.known.Claims = r.untilClaims
	}
	if err != nil {
		return fmt.Errorf("%s %w", given[0], err)
	}
	return nil
}

// provisionings are the values of --provisioning, and the provisionings that each stands for.
var provisionings = map[string][]string{
	"quota": {notebook.Vanilla}, "cpus": {notebook.Vanilla}, notebook.Vanilla: {notebook.Vanilla},
	"set": {notebook.Pinned}, "cpuset": {notebook.Pinned}, "cpuset-cpus": {notebook.Pinned}, notebook.Pinned: {notebook.Pinned},
	"both": {notebook.Vanilla, notebook.Pinned}, notebook.Whole: {notebook.Whole},
}

// placing reads what the flags put in place of a study's own.
func (r *running) placing() (p studyfile.Placing, err error) {
	for _, word := range items(r.provisioning) {
		of, ok := provisionings[word]
		if !ok {
			return p, fmt.Errorf("--provisioning %q: must be quota, set, both or whole", word)
		}
		p.Provisioning = append(p.Provisioning, of...)
	}
	p.Platforms, p.Sizes, p.Networks = items(r.platforms), items(r.sizes), items(r.networks)
	for _, n := range p.Networks {
		if !slices.Contains(notebook.Networks, n) {
			return p, fmt.Errorf("--network %q: must be one of %s", n, strings.Join(notebook.Networks, ", "))
		}
	}
	return p, nil
}

// items are the words of a flag's value; none where it is empty.
func items(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// complete puts into a study that was not read from a file what the flags name, and checks it.
func (r *running) complete(spec *studyfile.Spec) error {
	placing, err := r.placing()
	if err != nil {
		return err
	}
	if err := spec.Put(placing, session.Known); err != nil {
		return asUse(err)
	}
	return asUse(spec.Complete(session.Known))
}
