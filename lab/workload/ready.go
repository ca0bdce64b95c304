package workload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tare/lab/image"
	"tare/lab/origin"
	"tare/lab/ruler"
	"tare/notebook"
	"tare/notebook/durable"
)

// Ready is a workload that is ready to run with its parameters. Every platform gets the same root and the same files.
type Ready struct {
	Workload *Workload
	Params   map[string]string
	Image    *image.Image
	Work     *image.Tree
}

// Bench is where a workload's preparation runs: one bare-metal guest.
type Bench interface {
	// Execute runs the order in a guest with this root and work tree. scratch is the folder on the host that the guest has
	// as ruler.ScratchDir. It is valid until release is called.
	Execute(ctx context.Context, root *image.Image, work *image.Tree, o ruler.Order) (r ruler.Result, scratch string, release func() error, err error)
}

// Options for Make.
type Options struct {
	Store    *image.Store
	Cache    string // folder for fetched inputs
	Input    string // a user's file that replaces the workload's input; "" for none
	Bench    Bench
	Progress image.Progress
}

const (
	prepareTimeout = 3 * time.Hour // it may write a database that is larger than a guest's memory
	fetchTimeout   = 5 * time.Minute
	compileTimeout = 2 * time.Minute
)

// Folders in the cache with these prefixes are unfinished.
const (
	buildPrefix = "build-"
	fetchPrefix = "fetch-"
)

// Sweep removes unfinished folders of interrupted calls of Make from the cache, and returns their names. No Make may be running on the cache.
func Sweep(cache string) (removed []string, err error) {
	return durable.Sweep(cache, buildPrefix, fetchPrefix)
}

// Make builds the root or finds it in the store, compiles the workload's programs, fetches its input, and runs its
// preparation.
func Make(ctx context.Context, w *Workload, params map[string]string, o Options) (*Ready, error) {
	if o.Input != "" && w.Input == nil {
		return nil, fmt.Errorf("workload %s takes no input: leave out --input %s", w.Name, o.Input)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	say := o.Progress
	root, err := w.root(ctx, o.Store, say)
	if err != nil {
		return nil, err
	}
	if err := w.commanded(root); err != nil {
		return nil, err
	}
	for _, warning := range append(slices.Clone(root.Warnings), w.commas(root.Config.Env)...) {
		say("image " + root.Reference + ": " + warning)
	}
	if err := os.MkdirAll(o.Cache, 0o755); err != nil {
		return nil, err
	}
	build, err := os.MkdirTemp(o.Cache, buildPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(build)

	files := map[string]image.Source{}
	for _, name := range w.Files {
		data, err := w.file(name)
		if err != nil {
			return nil, fmt.Errorf("%s: files: %w", w.origin, err)
		}
		files[name] = image.Source{Data: data, Exec: strings.HasSuffix(name, ".sh")}
	}
	for program, source := range w.Build {
		say("compiling " + source)
		out := filepath.Join(build, program)
		if err := w.compile(ctx, source, out); err != nil {
			return nil, err
		}
		files[program] = image.Source{Path: out, Exec: true}
	}
	if o.Input != "" {
		if err := CheckInput(o.Input); err != nil {
			return nil, err
		}
		files[w.Input.Name] = image.Source{Path: o.Input}
	}
	fetched, err := w.fetched(o)
	if err != nil {
		return nil, err
	}
	for _, f := range fetched {
		path, err := f.bring(ctx, o.Cache, say)
		if err != nil {
			return nil, err
		}
		files[f.Name] = image.Source{Path: path, Exec: f.Exec}
	}
	work, err := o.Store.Files(ctx, files)
	if err != nil {
		return nil, fmt.Errorf("workload %s: its files: %w", w.Name, err)
	}
	if len(w.Prepare) > 0 {
		if work, err = w.prepare(ctx, root, work, params, files, o); err != nil {
			return nil, err
		}
	}
	return &Ready{Workload: w, Params: params, Image: root, Work: work}, nil
}

// commanded returns an error where neither the workload nor its image names a command.
func (w *Workload) commanded(root *image.Image) error {
	if len(w.Command) > 0 || w.Load != nil {
		return nil
	}
	if argv := slices.Concat(root.Config.Entrypoint, root.Config.Cmd); len(argv) == 0 || argv[0] == "" {
		return fmt.Errorf("image %s names no command (it has neither ENTRYPOINT nor CMD): name the command to run", root.Reference)
	}
	return nil
}

// commas returns a warning if programs may print "1,5" for 1.5 because of the image's locale. Tare would read such numbers wrongly.
func (w *Workload) commas(env []string) []string {
	printed := slices.ContainsFunc(append([]Metric{w.Metric}, w.Also...), func(m Metric) bool { return m.From != "" || m.Match != "" })
	if !printed {
		return nil
	}
	for _, name := range []string{"LC_ALL", "LC_NUMERIC", "LANG"} { // in the order of setlocale(3)
		for _, kv := range env {
			locale, ok := strings.CutPrefix(kv, name+"=")
			if !ok || locale == "" {
				continue
			}
			language, _, _ := strings.Cut(locale, ".")
			if language == "C" || language == "POSIX" || strings.HasPrefix(language, "en") {
				return nil
			}
			return []string{fmt.Sprintf("it sets %s, so programs may print numbers with a comma, which Tare does not read; set LC_ALL=C in the image, or run `env LC_ALL=C COMMAND`", kv)}
		}
	}
	return nil
}

// CheckInput returns an error if a user's file cannot be an input.
func CheckInput(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--input %s: there is no such file", path)
	case err != nil:
		return fmt.Errorf("--input: %w", err)
	case !st.Mode().IsRegular():
		return fmt.Errorf("--input %s: must be a regular file", path)
	}
	return nil
}

// Installing packages keeps one CPU busy. Fetching small files mostly waits for the network.
const rootsAtOnce, fetchesAtOnce = 2, 8

// Gather builds the root filesystems that the store does not have yet, and fetches the files that the cache does not have.
// It does several at the same time. Make then finds them.
func Gather(ctx context.Context, all []*Workload, o Options) error {
	var one sync.Mutex
	say := func(what string) {
		one.Lock()
		defer one.Unlock()
		if o.Progress != nil {
			o.Progress(what)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return each(ctx, rootsAtOnce, slices.Values(all), func(ctx context.Context, w *Workload) error {
			_, err := w.root(ctx, o.Store, say)
			return err
		})
	})
	g.Go(func() error { return fetchMissing(ctx, all, o, say) })
	return g.Wait()
}

// Gathered returns the roots that Gather built, and the paths of the files that it fetched.
func Gathered(ctx context.Context, all []*Workload, o Options) (roots []*image.Image, files []string, err error) {
	for _, w := range all {
		root, err := w.root(ctx, o.Store, o.Progress)
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, root)
		fetched, err := w.fetched(o)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range fetched {
			path, err := f.bring(ctx, o.Cache, o.Progress)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, path)
		}
	}
	return roots, files, nil
}

// fetchMissing fetches the workloads' files that the cache does not have.
func fetchMissing(ctx context.Context, all []*Workload, o Options, say image.Progress) error {
	missing := map[string]fetchedFor{} // by digest, because workloads may share files
	for _, w := range all {
		fetched, err := w.fetched(o)
		if err != nil {
			return err
		}
		for _, f := range fetched {
			if _, err := os.Stat(filepath.Join(o.Cache, f.SHA256)); err != nil {
				missing[f.SHA256] = f
			}
		}
	}
	return each(ctx, fetchesAtOnce, maps.Values(missing), func(ctx context.Context, f fetchedFor) error {
		_, err := f.bring(ctx, o.Cache, say)
		return err
	})
}

// fetchedFor is a file that Tare fetches for a workload.
type fetchedFor struct {
	Fetched
	what string // names the workload and the file's part in it, for errors
}

// fetched are the files that Tare fetches for the workload: its input, unless the user gives one, and its further files.
func (w *Workload) fetched(o Options) (all []fetchedFor, err error) {
	if w.Input != nil && o.Input == "" {
		in := *w.Input
		in.Exec = false // it is data
		all = append(all, fetchedFor{in, "workload " + w.Name + ": its input"})
	}
	more, err := w.inputs()
	for _, in := range more {
		all = append(all, fetchedFor{in, "workload " + w.Name + ": its file " + in.Name})
	}
	return all, err
}

// bring fetches the file. An error says what the file is for.
func (f *fetchedFor) bring(ctx context.Context, cache string, say image.Progress) (string, error) {
	path, err := f.fetch(ctx, cache, say)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.what, err)
	}
	return path, err
}

// each calls do for all, at most atOnce at the same time, until one call fails.
func each[T any](ctx context.Context, atOnce int, all iter.Seq[T], do func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for x := range all {
		g.Go(func() error { return do(ctx, x) })
	}
	return g.Wait()
}

func (w *Workload) root(ctx context.Context, s *image.Store, say image.Progress) (*image.Image, error) {
	root, err := w.plainRoot(ctx, s, say)
	if err != nil {
		return nil, err
	}
	return w.Setting.applied(ctx, s, root, say)
}

func (w *Workload) plainRoot(ctx context.Context, s *image.Store, say image.Progress) (*image.Image, error) {
	if w.Image.Reference != "" {
		return s.OCI(ctx, w.Image.Reference, say)
	}
	return s.Debian(ctx, image.Recipe{Suite: w.Image.Suite, Packages: w.Image.Packages}, say)
}

// compile makes a static program from one C source with the host's compiler. A static program runs in any root.
func (w *Workload) compile(ctx context.Context, source, out string) error {
	text, err := w.file(source)
	if err != nil {
		return fmt.Errorf("%s: build: %w", w.origin, err)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "cc", "-O2", "-static", "-Wall", "-x", "c", "-o", out, "-")
	cmd.Stdin = bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(out)) // Make removes this folder, with anything that a killed compiler leaves
	if said, err := cmd.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("workload %s: %s must be compiled and there is no C compiler: apt-get install gcc libc6-dev", w.Name, source)
		}
		return fmt.Errorf("workload %s: compiling %s: %w: %s", w.Name, source, err, lastLine(said))
	}
	return nil
}

// prepare runs the workload's preparation on bare metal and returns the tree with the files that it left. It runs once for
// the same root, files and command, because a database that is seeded twice has different bytes.
func (w *Workload) prepare(ctx context.Context, root *image.Image, work *image.Tree, params map[string]string, files map[string]image.Source, o Options) (_ *image.Tree, err error) {
	order := w.Order(w.Prepare, params, root, Seat{})
	order.Timeout = prepareTimeout
	key := fmt.Sprintf("prepared %q in %s with %s", append(slices.Clone(order.Argv), order.Env...), root.Digest, work.Digest)
	if known, err := o.Store.Recall(key); known != nil || err != nil {
		return known, err
	}
	o.Progress("preparing the data of " + w.Name + ", once")
	r, scratch, release, err := o.Bench.Execute(ctx, root, work, order)
	if err != nil {
		return nil, fmt.Errorf("workload %s: preparing it: %w", w.Name, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if cause := Failure(r); cause != nil {
		what := "its data"
		if w.Input != nil {
			what = "its input"
		}
		if o.Input != "" {
			what = "the input " + o.Input
		}
		return nil, fmt.Errorf("workload %s: %s cannot be prepared: %w", w.Name, what, &notebook.Error{Says: cause})
	}
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !fileOK.MatchString(e.Name()) {
			return nil, fmt.Errorf("workload %s: its preparation left %q: must leave only regular files with plain names", w.Name, e.Name())
		}
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		files[e.Name()] = image.Source{Path: filepath.Join(scratch, e.Name()), Exec: st.Mode()&0o111 != 0}
	}
	if w.Input != nil { // the preparation has taken what it needs from the input
		delete(files, w.Input.Name)
	}
	tree, err := o.Store.Files(ctx, files)
	if err != nil {
		return nil, err
	}
	return tree, o.Store.Remember(key, tree)
}

// outputLimit is how many bytes of a trial's output a record may hold: enough for a message.
const outputLimit = 4096

// outputLimit is how many bytes of its commands' output Tare reads. If the metrics need the whole output, it is all that the ruler passes on.
func (w *Workload) outputLimit() int {
	if w.whole() {
		return ruler.MaxOutput
	}
	return outputLimit
}

// Tail is the part of a result's output that a record keeps: the ends of both outputs.
func Tail(r ruler.Result) string {
	end := func(b []byte) string { return string(b[max(0, len(b)-outputLimit):]) }
	return end(r.Stderr) + end(r.Stdout)
}

// Seat is the place where a command of a workload runs. It gives the values of the placeholders that are not parameters.
type Seat struct {
	Instance notebook.Instance
	Address  netip.Addr // for the service, where it listens; for the load, where it reaches the service
	Port     int        // 0: the service's own
}

// Order makes the order for one of the workload's command lines.
func (w *Workload) Order(argv []string, params map[string]string, root *image.Image, at Seat) ruler.Order {
	values := map[string]string{
		"work": ruler.WorkDir, "scratch": ruler.ScratchDir,
		"cores":  fmt.Sprint(max(1, int(at.Instance.Cores))),
		"memory": fmt.Sprint(at.Instance.Memory >> 20),
	}
	if w.Service != nil {
		values["address"], values["port"] = at.Address.String(), fmt.Sprint(cmp.Or(at.Port, w.Service.Port))
	}
	own := []string{"TARE_WORK=" + ruler.WorkDir, "TARE_SCRATCH=" + ruler.ScratchDir}
	if w.Shares != "" {
		values[sharedPlacehold] = ruler.SharedDir
		own = append(own, "TARE_SHARED="+ruler.SharedDir)
	}
	maps.Copy(values, params)
	cfg := root.Config
	if len(argv) == 0 {
		argv = append(append([]string{}, cfg.Entrypoint...), cfg.Cmd...)
	} else {
		argv = Expand(argv, values)
	}
	env := merge(
		[]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + cmp.Or(cfg.Home, "/root")},
		slices.DeleteFunc(slices.Clone(cfg.Env), func(kv string) bool { return kv == "HOME=" }), // Docker ignores an empty one
		w.Setting.Env,
		own)
	o := ruler.Order{Argv: argv, Env: env, UID: cfg.UID, GID: cfg.GID, Groups: cfg.Groups, OutputLimit: w.outputLimit()}
	if cfg.WorkingDir != "" && cfg.WorkingDir != "/" {
		o.Dir = path.Clean(cfg.WorkingDir)
	}
	return o
}

// merge joins environments. If a name occurs twice, the later value counts.
func merge(envs ...[]string) []string { return origin.Merge(slices.Concat(envs...)) }

// LastWords is the last line that a result's program printed, on stderr if it has one, otherwise on stdout; "" if none.
func LastWords(r ruler.Result) string {
	if said := lastLine(r.Stderr); said != "" {
		return said
	}
	return lastLine(r.Stdout)
}

// Failure says why a trial failed; nil if it did not.
func Failure(r ruler.Result) *notebook.Message {
	said := LastWords(r)
	switch {
	case r.Error != "":
		return notebook.TextMessage(r.Error)
	case r.TimedOut:
		return notebook.Say("timed-out", "after", r.Elapsed.Round(time.Millisecond), "said", said)
	case r.Signal != "" && r.OOMKills > 0:
		return notebook.Say("out-of-memory", "signal", r.Signal)
	case r.Exit != 0 && r.OOMKills > 0:
		return notebook.Say("out-of-memory-in-part", "status", r.Exit, "said", said)
	case r.Signal != "":
		return notebook.Say("signal", "signal", r.Signal, "said", said)
	case r.Exit != 0:
		return notebook.Say("exit", "status", r.Exit, "said", said)
	}
	return nil
}

// lastLine is the last line that is not blank, as printable text of limited length.
func lastLine(b []byte) string {
	lines := bytes.FieldsFunc(b, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(string(lines[i])); l != "" {
			if len(l) > 300 {
				l = l[:300] + "…"
			}
			return strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f || r == '\uFFFD' {
					return '?'
				}
				return r
			}, l)
		}
	}
	return ""
}
