//go:build linux

// Package session is one use of a host as a laboratory, from locking the host to unlocking it: the state that Tare keeps there, the
// host's capabilities, and the guests of a study. It knows the engines only by their contract (package engine); engines.go lists
// them.
package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/host"
	"tare/lab/hugepages"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/ksm"
	"tare/lab/network"
	"tare/lab/noise"
	"tare/lab/programs"
	"tare/lab/registry"
	"tare/lab/remote"
	"tare/lab/setting"
	"tare/lab/trace"
	"tare/lab/workload"
	"tare/notebook"
)

// controlSocket is ssh's socket, below the state folder, while loads run on another machine.
const controlSocket = "ssh"

// inputsDir is the folder of fetched inputs, below the state folder.
const inputsDir = "inputs"

// Lab is a host that Tare may measure on while it is open. Only one Lab is open on a host at a time, because two would distort each
// other's results.
type Lab struct {
	env   engine.Env // for its engines
	locks []*os.File // of the host and of the state folder
	store *image.Store
	host  notebook.Host
	say   image.Progress

	bridge      *network.Bridge             // made when first needed
	registry    *registry.Registry          // that guests' starts pull images from; nil: not needed yet
	away        *remote.Machine             // machine that loads run on; nil: this host
	gone        []int                       // CPUs that are offline now, ascending
	torn        bool                        // it is unknown which are offline
	restoreCPUs func(context.Context) error // brings the offline CPUs back
	memory      hugepages.Tree              // files that withhold memory: this host's
	kept        kept                        // memory that is withheld from guests
	hungry      map[int64]bool              // by the instance's bytes: its guests need all of the host's memory
	set         hostSet                     // what the host is set to for guests
	shrinks     map[int]*notebook.Message   // by number of CPUs: why the host cannot be reduced to it; nil if it can

	engines map[made]engine.Driver        // those used so far
	kernels map[string]string             // files with guests' kernels, by the names that treatments have for them
	answers map[asked]notebook.Capability // of engines, so far

	shared map[string]*sharing // folders that guests share now, by their treatment

	kit   *trace.Kit                  // of a study with traced trials; otherwise nil
	quiet *noise.Quieted              // settings changed for a run; nil: none
	unset func(context.Context) error // restores what the kind of study set; nil: nothing
}

// Permitted says why this user cannot measure.
func Permitted() error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed to measure: for chroot, mounts, cgroups, CPU sets and containers; run it with sudo (commands that read results need no root)")
	}
	return nil
}

// Open locks the host for measuring, undoes what a dead run has left, and inspects the host. It reports long steps to say.
func Open(ctx context.Context, say image.Progress) (_ *Lab, err error) {
	if err := Permitted(); err != nil {
		return nil, err
	}
	l := newLab(say)
	if l.env.State, err = stateDir(); err != nil {
		return nil, err
	}
	if l.env.Entry, err = os.Executable(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.locks, err = takeHost(l.env.State); err != nil {
		return nil, err
	}
	left, err := recoverHost(ctx, l.env.State)
	if errors.Is(err, journal.ErrUnreachable) { // it disturbs nobody who does not need that engine
		say("warning: " + absent(err))
		err = nil
	}
	if err == nil {
		var half []string
		l.store, half, err = openSwept(l.env.State)
		left = append(left, removed(half)...)
	}
	for _, u := range left {
		say("left by a dead run, " + u.String())
	}
	if err != nil {
		return nil, err
	}
	if l.env.Ruler, err = programs.File(l.env.State, programs.Ruler); err != nil {
		return nil, err
	}
	if l.env.Init, err = programs.File(l.env.State, programs.Init); err != nil {
		return nil, err
	}
	if l.env.Journal, err = journal.Open(l.env.State); err != nil {
		return nil, err
	}
	if l.host, err = host.Inspect(ctx); err != nil {
		return nil, err
	}
	l.host.Capabilities = host.Capabilities(ctx)
	return l, ctx.Err()
}

func newLab(say image.Progress) *Lab {
	return &Lab{say: say, memory: hugepages.Host, engines: map[made]engine.Driver{}, answers: map[asked]notebook.Capability{}, shrinks: map[int]*notebook.Message{}, hungry: map[int64]bool{}}
}

// Undone is something that a dead run has left and that was undone.
type Undone struct {
	What string
	Back bool // it is as it was before; otherwise it is gone
}

func (u Undone) String() string {
	if u.Back {
		return "put back: " + u.What
	}
	return "removed: " + u.What
}

// undone describes an undone entry of the journal: the host's own things are back, and Tare's are gone.
func undone(e journal.Entry) Undone {
	switch e.Kind {
	case noise.KindSetting, setting.Kind, hugepages.KindWithheld, ksm.Kind, qemu.KindHugePages, network.KindForwarding, engine.KindController:
		return Undone{What: e.Kind + " " + e.Target, Back: true}
	case host.KindOffline:
		return Undone{What: "CPUs " + e.Target, Back: true}
	}
	return Undone{What: e.Kind + " " + e.Target}
}

// removed are things that are gone.
func removed(what []string) (all []Undone) {
	for _, w := range what {
		all = append(all, Undone{What: w})
	}
	return all
}

// recoverHost undoes what dead runs have left, and returns it.
func recoverHost(ctx context.Context, state string) (done []Undone, err error) {
	undo := Engines.Undo()
	maps.Copy(undo, host.Undo())
	maps.Copy(undo, noise.Host.Undo())
	maps.Copy(undo, ksm.Host.Undo())
	maps.Copy(undo, hugepages.Host.Undo())
	maps.Copy(undo, setting.Host.Undo())
	entries, err := journal.Recover(ctx, state, undo, Engines.Lasting()...)
	for _, e := range entries {
		done = append(done, undone(e))
	}
	if err != nil {
		return done, fmt.Errorf("what an earlier run left cannot be undone: %w", err)
	}
	return done, nil
}

// absent says in one line what is left because an engine cannot be reached, and what to do. The error names the journal.
func absent(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ") + "; then run `tare clean`. If what is missing is gone for good, remove the journal named above: Tare then forgets what it lists"
}

// Clean undoes and removes everything that dead runs have left, and returns it.
func Clean(ctx context.Context) (done []Undone, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("root is needed to undo what a run left: run it with sudo")
	}
	state, err := stateDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	locks, err := takeHost(state)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release(locks)) }()
	done, err = recoverHost(ctx, state)
	if errors.Is(err, journal.ErrUnreachable) { // clean the rest nevertheless
		unreachable := errors.New(absent(err))
		defer func() { err = errors.Join(unreachable, err) }()
	} else if err != nil {
		return done, err
	}
	_, half, err := openSwept(state)
	done = append(done, removed(half)...)
	if err != nil {
		return done, err
	}
	half, err = programs.Sweep(state)
	done = append(done, removed(half)...)
	if err != nil {
		return done, err
	}
	if err := os.Remove(filepath.Join(state, controlSocket)); !errors.Is(err, os.ErrNotExist) {
		return done, err
	}
	return done, nil
}

// openSwept opens the image store. It first removes, and returns, what dead runs left incomplete: in the store, among the
// workloads' inputs, and where machines are tried. Its caller holds the host's lock, so nobody is making anything.
func openSwept(state string) (_ *image.Store, removed []string, err error) {
	store, err := image.OpenStore(filepath.Join(state, "images"))
	if err != nil {
		return nil, nil, err
	}
	if removed, err = store.Sweep(); err != nil {
		return nil, removed, err
	}
	half, err := qemu.Sweep(state)
	removed = append(removed, half...)
	if err != nil {
		return store, removed, err
	}
	half, err = workload.Sweep(filepath.Join(state, inputsDir))
	return store, append(removed, half...), err
}

// Close unlocks the host. Its error names what could not be undone.
func (l *Lab) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := []error{l.withhold(ctx, 0, nil), l.size(ctx, 0), l.set.to(ctx, l.env.Journal, nil)}
	if l.unset != nil { // after all CPUs are back, because they have settings
		errs = append(errs, l.unset(ctx))
	}
	if l.quiet != nil {
		errs = append(errs, l.quiet.PutBack(ctx))
	}
	if l.kit != nil {
		l.kit.Close()
	}
	if l.away != nil {
		errs = append(errs, l.away.Close(ctx))
	}
	if l.registry != nil {
		errs = append(errs, l.registry.Close(ctx))
	}
	if l.bridge != nil {
		errs = append(errs, l.bridge.Close(ctx))
	}
	if l.env.Journal != nil {
		errs = append(errs, l.env.Journal.Close())
	}
	return errors.Join(append(errs, release(l.locks))...)
}

// closeTimeout bounds the undoing of the lab's own changes.
const closeTimeout = 30 * time.Second

// Host is the machine as it was found.
func (l *Lab) Host() notebook.Host { return l.host }

// Store is the image store.
func (l *Lab) Store() *image.Store { return l.store }

// cache is the folder of fetched inputs.
func (l *Lab) cache() string { return filepath.Join(l.env.State, inputsDir) }

// Doctor describes the host and tries its capabilities. Without root it tries only what needs no root. It locks the host, because
// it would disturb another tare that measures. kernel is a file with a kernel to try virtual machines with; "": the usual one.
func Doctor(ctx context.Context, kernel string, say image.Progress) (_ notebook.Host, err error) {
	var l *Lab
	if os.Geteuid() == 0 {
		if l, err = Open(ctx, say); err != nil {
			return notebook.Host{}, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
	} else {
		l = newLab(func(string) {})
		if l.host, err = host.Inspect(ctx); err != nil {
			return l.host, err
		}
		l.host.Capabilities = host.Capabilities(ctx)
	}
	l.host.Capabilities = append(l.host.Capabilities, host.Tools(ctx)...)
	named := "" // any name does, because it is the only one
	if kernel != "" {
		named = filepath.Base(kernel)
		l.UseKernels(map[string]string{named: kernel})
	}
	var accelerators []engine.Kind
	for _, k := range Engines {
		if len(k.Accelerators) == 0 {
			l.ask(ctx, k, "", k.Capabilities...)
			continue
		}
		l.ask(ctx, k, named, k.Capabilities[:1]...)
		accelerators = append(accelerators, k)
	}
	l.host.Capabilities = append(append(l.host.Capabilities, tracers()...), faults(), devices())
	for _, k := range accelerators { // these take long
		tried := k.Accelerators
		if kernel == "" { // accelerators in between need a kernel made for them
			tried = []string{tried[0], tried[len(tried)-1]}
		}
		l.ask(ctx, k, named, tried...)
	}
	return l.host, ctx.Err()
}

// noiseTime is about how long Noise measures.
const noiseTime = 75 * time.Second

// Noise tries which settings that make a host noisy can be changed here, and measures how much each helps. command is the command
// to run again and again.
func Noise(ctx context.Context, command []string, say image.Progress) (r noise.Report, err error) {
	l, err := Open(ctx, say)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return noise.Host.Measure(ctx, l.env.Journal, l.host, command, noiseTime, say)
}
