package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tare/desk/claims"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/lab/engine/layers"
	"tare/lab/host"
	"tare/lab/noise"
	"tare/lab/session"
	"tare/lab/study"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/stats"
	"tare/studies"
	"tare/workloads"
)

// labCommands measure. They need Linux, and root.
func labCommands() []*cobra.Command {
	return []*cobra.Command{runCommand(), benchCommand(), fitCommand(), doctorCommand(), studyCommand(), workloadCommand(), imageCommand(), cleanCommand(), memoryCommand(), observeCommand(), predictCommand(), fleetCommand(), layersCommand(), noiseCommand(), onNodeCommand(), enterNodeCommand()}
}

// noiseCommand is the short work that `tare doctor --noise` runs again and again.
func noiseCommand() *cobra.Command {
	return &cobra.Command{Use: "noise", Hidden: true, Args: nothing, RunE: func(*cobra.Command, []string) error { return noise.Work() }}
}

// layersCommand starts a guest of the isolation ladder: it enters the layers and then becomes the ruler.
func layersCommand() *cobra.Command {
	return &cobra.Command{Use: layers.Command, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return exit(layers.Main(args)) }}
}

func runCommand() *cobra.Command {
	var r running
	c := &cobra.Command{
		Use:   "run STUDY|FILE",
		Short: "Run a study: a shipped one, or a file of your own",
		Long: `Runs every configuration of a study once in each round, in random order, each time in a new process, container or VM. Tare
records each run before the next begins. After an interrupt or a kill, the same command continues where it stopped.

--precision, --decide and --until-claims replace the study's number of rounds, for at most ` + fmt.Sprint(studyfile.UntilRounds) + ` rounds:
  --precision 1%  until every interval is within ±1 % of its ratio
  --decide 2%     until each overhead is known to be at least 2 % more, at least 2 % less, or within 2 %
  --until-claims  until every claim that this host can test is decided

--platforms, --size, --provisioning and --network replace the values that the study names. --only keeps a part of the study.

--against cn:quota compares with containers with a CPU quota instead of bare metal. The run ends when these ratios are known
well enough, and the summary and the report show them. --compare OLD prints what changed since an earlier run of the study,
as tare compare does.

With --explain each configuration also has traced runs, as many as its other runs and in random order among them. Ratios come
only from untraced runs. tare explain then shows where the time went and what the tracers cost.`,
		Example: `  sudo tare run quick --out R
  sudo tare run quick --explain --out R && tare explain R
  sudo tare run quick --decide 2% --time-budget 20m
  sudo tare run pinning-small --until-claims --time-budget 30m
  sudo tare run quick --out after --compare before
  sudo tare run quick --platforms host,container:crun --size 2/2GB
  sudo tare run ./mine.yaml --only platform=cn,instance=large --time-budget 30m`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && r.explain != "" {
				if _, err := studyfile.ParseExplain(args[1]); err == nil {
					return fmt.Errorf("run %q: only one study is allowed; write tracers after an equals sign: --explain=%[1]s", args[1])
				}
			}
			if len(args) != 1 {
				return asUse(errors.New("run: name one study (tare study list) or one study file"))
			}
			if err := r.check(c); err != nil {
				return err
			}
			spec, err := r.study(args[0], "")
			if err != nil {
				return err
			}
			return r.run(c.Context(), spec, c.Flags().Changed("seed"))
		},
	}
	r.flags(c, "", "")
	r.timing(c)
	return c
}

// study reads a study, and puts in place of its own what the flags name. work, unless empty, takes the place of its workloads.
func (r *running) study(name, work string) (*studyfile.Spec, error) {
	placing, err := r.placing()
	if err != nil {
		return nil, err
	}
	placing.Workload = work
	spec, err := studyfile.Load(studies.FS, name, session.Known)
	if err != nil {
		return nil, err
	}
	return spec, asUse(spec.Put(placing, session.Known))
}

// run measures and prints the result.
func (r *running) run(ctx context.Context, spec *studyfile.Spec, seedChosen bool) (err error) {
	began := time.Now()
	if r.out == "" {
		r.out = fmt.Sprintf("tare-%s-%s", spec.Name, began.Format("20060102-150405"))
	}
	if err := session.Permitted(); err != nil && !r.plan { // without root, the folder's own fault matters less
		return err
	}
	if err := notebook.Admits(r.out, spec.Name); err != nil && !r.plan {
		return err
	}
	if err := r.checkSince(spec.Name); err != nil {
		return err
	}
	asked, published, err := r.ask(spec, seedChosen)
	if err != nil {
		return err
	}
	q := session.Request{Spec: spec, Choices: asked.Choices, Workloads: workloads.FS, Out: r.out, Args: os.Args[1:], TuneHost: r.tuneHost, Recorded: r.recorded,
		Check: func(s notebook.Study, h notebook.Host) error { return data.CheckReference(s, h, r.reading.Baseline) }}
	if r.budget > 0 {
		q.Deadline = began.Add(r.budget)
	}
	if r.plan {
		return r.showPlan(ctx, q, published)
	}
	show := newProgress(os.Stderr)
	if r.silent {
		show = silentProgress(os.Stderr)
	}
	defer show.end()
	if onHost := asked.HostCode(); len(onHost) > 0 {
		show.note("Runs as root on this host: " + strings.Join(onHost, ", ") + ".")
	}
	l, err := session.Open(ctx, show.Say)
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
	}()
	if r.known.Claims {
		q.Goal = func() ([]study.Question, error) { return openClaims(r.out, published) }
	}
	run, reason, err := l.Run(ctx, q, show)
	show.end()
	if err != nil {
		return err
	}
	return r.finish(run, reason, published)
}

// ask applies the flags to the study, and returns an error for each mistake in either that shows without a host.
func (r *running) ask(spec *studyfile.Spec, seedChosen bool) (asked *studyfile.Asked, published []claims.Claim, err error) {
	if r.explain == "" && spec.Explain != "" {
		if r.tracers, err = studyfile.ParseExplain(spec.Explain); err != nil {
			return nil, nil, fmt.Errorf("study %s: explain: %w", spec.Name, err)
		}
	}
	published, err = publishedOf(spec) // otherwise the report would fail after hours of measuring
	if err != nil {
		return nil, nil, err
	}
	chosen := studyfile.Choices{
		Seed: r.seed, SeedChosen: seedChosen, Rounds: r.rounds, Until: r.known, Only: r.kept, Accel: r.accel, Kernels: r.kernels, Input: r.input, LoadFrom: r.from, Tare: version(), Explain: r.tracers, NoHostCode: r.noHostCode,
	}
	if !notebook.IsBareMetal(r.reading.Baseline) {
		chosen.Against = notebook.ReferenceText(r.reading.Baseline)
	}
	asked, err = spec.Ask(workloads.FS, chosen)
	return asked, published, err
}

// checkSince refuses a folder for --compare that holds no results of the study.
func (r *running) checkSince(study string) error {
	if r.since == "" {
		return nil
	}
	f, err := notebook.Read(r.since)
	if err == nil && f.Study.Name != study {
		err = fmt.Errorf("%s holds the study %s; name a folder of the study %s", r.since, f.Study.Name, study)
	}
	if err == nil && sameFolder(r.since, r.out) {
		err = fmt.Errorf("%s is also the folder of --out; name the folder of an earlier run", r.since)
	}
	if err != nil {
		return fmt.Errorf("--compare: %w", err)
	}
	return nil
}

// openClaims are the claims that this host can test and that the measurements so far leave undecided.
func openClaims(dir string, published []claims.Claim) (open []study.Question, err error) {
	s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All, Baseline: bareMetal})
	if err != nil {
		return nil, err
	}
	for _, v := range claims.Judge(s, published) {
		if len(v.Waits) == 0 || v.Answer == claims.NotTestable && v.More > studyfile.UntilRounds { // no run waits that long for a part of it
			continue
		}
		q := study.Question{Rounds: v.More}
		for _, t := range v.Waits {
			q.Of = append(q.Of, t.ID)
		}
		open = append(open, q)
	}
	return open, nil
}

// answer prints the summary, or in its place what changed since the folder of --compare, or between two kernels of VMs.
func (r *running) answer(s *data.Summary) error {
	switch {
	case r.tell != nil:
		return r.tell(s)
	case r.since == "" && len(r.kernels) > 1:
		found, err := compare.Kernels(s, s.Margin())
		if err != nil {
			return err
		}
		return printComparison(found, r.format)
	case r.since == "":
		return printSummary(os.Stdout, s, r.format, details{})
	}
	as := r.reading // with the reference of the new folder
	if as.Baseline = s.Baseline; len(as.Baseline) == 0 {
		as.Baseline = bareMetal
	}
	old, err := data.Read([]string{r.since}, as)
	if err != nil {
		return err
	}
	found, err := compare.From(old, s, stats.Margin)
	if err != nil {
		return err
	}
	return printComparison(found, r.format)
}

// finish prints the result and writes the report.
func (r *running) finish(run *study.Run, reason *notebook.Message, published []claims.Claim) error {
	s, err := data.Read([]string{r.out}, r.reading)
	if err != nil {
		return err
	}
	if err := r.answer(s); err != nil {
		return err
	}
	if r.known.Claims {
		verdicts := slices.DeleteFunc(claims.Judge(s, published), func(v claims.Verdict) bool { return v.Answer == claims.NotTestable })
		fmt.Fprintln(os.Stderr)
		if err := terminal.Verdicts(os.Stderr, verdicts, nil, screen(os.Stderr)); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "\nClaims that could not be tested here, and why: tare claims %s\n", r.out)
	}
	if _, err := writeReport(s, "", 0); err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(r.out, "report.html"))
	if err != nil {
		return err
	}
	if !r.silent {
		fmt.Fprintf(os.Stderr, "Report: %s\n", path)
	}
	if len(run.Plan.Study.Explain) > 0 && !r.silent {
		fmt.Fprintf(os.Stderr, "Where the time went: tare explain %s\n", r.out)
	}
	switch {
	case reason.Is("interrupted"):
		fmt.Fprintf(os.Stderr, "tare: interrupted; the runs so far are kept, and the same command with --out %s continues\n", r.out)
		return exit(130)
	case reason.Is("precise-enough") && r.known.Claims:
		fmt.Fprintln(os.Stderr, "Every claim that this host can test is decided.")
	case reason.Is("cap-on-rounds") && r.known.Claims:
		fmt.Fprintf(os.Stderr, "Stopped after %d rounds; not every claim is decided.\n", run.Plan.Study.Design.Cap)
	case reason.Is("cap-on-rounds") && run.Plan.Study.Design.Looks() > 0 && s.Folders[0].Rounds >= run.Plan.Study.Design.Cap: // emulated VMs have fewer
		fmt.Fprintf(os.Stderr, "Stopped after %d rounds; the requested precision was not reached. The first lines say what is inconclusive.\n", run.Plan.Study.Design.Cap)
	case reason.Is("time-budget"):
		for _, note := range run.Notes() {
			if note.Is("nothing-compared") {
				fmt.Fprintf(os.Stderr, "tare: %s\n", words.Message(note))
			}
		}
		fmt.Fprintf(os.Stderr, "The time budget is used up; the same command with --out %s continues.\n", r.out)
	}
	if n := run.Failed(); n > 0 {
		return fmt.Errorf("%d runs failed; the table's notes and the report say why", n)
	}
	return nil
}

func doctorCommand() *cobra.Command {
	var format, kernel string
	var noisy bool
	c := &cobra.Command{Use: "doctor", Short: "Try and report what this host supports", Args: nothing,
		Long: `Tests each capability that a study may need. The answer is yes; no, with the reason and what to do; or inconclusive. KVM
counts as supported if a small VM boots with the CPU's virtualization. On some hosts KVM emulates the VM's kernel mode. For
these hosts, --vm-kernel FILE also tests a kernel made for this mode, as kvm-emulated, for up to four minutes.

With --noise the command instead tests which settings of the host make times vary. A short command runs on one CPU for 75
seconds, while Tare changes and restores each setting that this host allows. Tare compares the command with itself and reports
how much each setting narrows the interval. tare run --tune-host applies the settings.`,
		Example: "  sudo tare doctor\n  sudo tare doctor --noise\n  sudo tare doctor --format json\n  sudo tare doctor --vm-kernel ./vmlinuz",
		RunE: func(c *cobra.Command, _ []string) error {
			if noisy {
				return doctorNoise(c.Context(), format)
			}
			if c.Flags().Changed("vm-kernel") {
				if err := session.CheckKernel(kernel); err != nil {
					return fmt.Errorf("--vm-kernel: %w", err)
				}
			}
			h, err := session.Doctor(c.Context(), kernel, func(what string) { fmt.Fprintln(os.Stderr, what) })
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(os.Stdout, h)
			}
			if err := host.Describe(os.Stdout, h); err != nil {
				return err
			}
			fmt.Println()
			return describeCapabilities(h.Capabilities)
		}}
	tableOrJSON(c, &format)
	c.Flags().StringVar(&kernel, "vm-kernel", "", "kernel to try VMs with: `FILE`, a bzImage or vmlinux")
	c.Flags().BoolVar(&noisy, "noise", false, "measure what makes times vary on this host, and which settings help")
	c.MarkFlagsMutuallyExclusive("noise", "vm-kernel")
	return c
}

func doctorNoise(ctx context.Context, format string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	show := newProgress(os.Stderr)
	r, err := session.Noise(ctx, []string{self, noiseCommand().Use}, show.Say)
	show.end()
	if err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(os.Stdout, r)
	}
	return r.Describe(os.Stdout)
}

func describeCapabilities(all []notebook.Capability) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, c := range all {
		mark := map[notebook.Answer]string{notebook.Supported: "yes", notebook.NotSupported: "no", notebook.Inconclusive: "?"}[c.Answer]
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, c.Why)
		if c.Do != "" {
			fmt.Fprintf(w, "\t\tto enable it: %s\n", c.Do)
		}
	}
	return w.Flush()
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{Use: "clean", Short: "Remove and restore what an interrupted run left behind", Args: nothing,
		Long: `Undoes every change that a run recorded in its journal but could not undo: processes, VMs, mounts, cgroups, containers,
folders, unfinished images, host settings of --tune-host. It keeps results and finished images.
The images are in /var/lib/tare/images; delete this folder to free their space.`,
		Example: "  sudo tare clean",
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := session.Clean(c.Context())
			for _, d := range done {
				fmt.Println(plain(d.String())) // a path may hold anything
			}
			if err == nil && len(done) == 0 {
				fmt.Println("Nothing to do.")
			}
			return err
		}}
}
