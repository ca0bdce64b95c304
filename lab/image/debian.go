package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"tare/lab/proc"
)

var (
	suiteForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*$`)
	// A package in apt-get's form: a name, with optional architecture and version.
	packageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]+(:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?$`)
)

// sourceDate is the time of all files that packages make while they are installed (2024-01-01). With it, two builds from the same
// packages give the same root as far as their scripts allow.
const sourceDate = "1704067200"

// debianOptions are a part of a recipe's meaning: after a change all roots are built again.
var debianOptions = []string{
	"--mode=root",
	"--format=tar",
	"--variant=minbase",
	`--aptopt=Apt::Install-Recommends "false"`,
	"--extract-hook=" + withoutManuals,
	"--skip=output/dev", // every guest gets its own /dev
}

// withoutManuals makes dpkg omit manuals and translations. Only essential packages are extracted before dpkg is installed. dpkg
// unpacks them again, so their manuals can be removed. (With --dpkgopt, mmdebstrap would start a filter in Python for each
// essential package, which takes a third of the build time.)
const withoutManuals = `cd "$1" && rm -rf usr/share/man usr/share/info usr/share/locale usr/share/doc && cat >>etc/dpkg/dpkg.cfg.d/99mmdebstrap <<END
path-exclude=/usr/share/man/*/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/locale/locale.alias
path-exclude=/usr/share/doc/*
# A licence goes with its program.
path-include=/usr/share/doc/*/copyright
END
`

// Debian builds a Debian root from the recipe's packages with mmdebstrap, or finds it in the store. It uses the mirror that
// mmdebstrap uses on this host, and verifies signatures. It needs root, a network, and tens of seconds.
//
// A recipe is built only once: its packages stay those of the first build.
func (s *Store) Debian(ctx context.Context, r Recipe, p Progress) (_ *Image, err error) {
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %s: %w", r.reference(), err)
		}
	}()
	unlock, err := s.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, rec, err := s.recall(key)
	if err == nil && rec == nil {
		if rec, err = s.buildDebian(ctx, r, p); err == nil {
			err = s.remember(key, rec.Digest)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.image(r.reference(), "Debian packages", rec), nil
}

func (r Recipe) reference() string {
	return "debian:" + r.Suite + "+" + strings.Join(r.sorted(), ",")
}

func (r Recipe) sorted() []string {
	return slices.Compact(slices.Sorted(slices.Values(r.Packages)))
}

func (r Recipe) key() (string, error) {
	if !suiteForm.MatchString(r.Suite) {
		return "", fmt.Errorf(`image recipe: the suite %q is not the name of a Debian suite, such as "trixie"`, r.Suite)
	}
	for _, p := range r.Packages {
		if !packageForm.MatchString(p) {
			return "", fmt.Errorf(`image recipe: %q is not the name of a Debian package, such as "ffmpeg"`, p)
		}
	}
	b, err := json.Marshal([]any{"debian", runtime.GOARCH, r.Suite, r.sorted(), debianOptions, sourceDate})
	return string(b), err
}

func with(packages []string) string {
	if len(packages) == 0 {
		return ""
	}
	return " with " + strings.Join(packages, ", ")
}

// buildDebian builds the root and puts it into the store.
func (s *Store) buildDebian(ctx context.Context, r Recipe, p Progress) (_ *record, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("building a root from packages needs root (chroot, owners of files): run as root, or name an image that is in the store")
	}
	tool, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return nil, fmt.Errorf("mmdebstrap, which builds roots from Debian packages, is not installed (%w): apt-get install mmdebstrap", err)
	}
	w, err := s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	build := filepath.Join(w.dir, "build")
	dir := filepath.Join(w.dir, treeName)
	for _, d := range []string{build, dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, noSpace(err, s.root)
		}
	}
	u, err := newUnpacker(ctx, dir, s.limits)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.close()) }()

	// The build folder is deleted in any case, so nothing in it needs to survive a crash of the host.
	args := append(slices.Clone(debianOptions), "--dpkgopt=force-unsafe-io")
	if len(r.Packages) > 0 {
		args = append(args, "--include="+strings.Join(r.sorted(), ","))
	}
	args = append(args, "--", r.Suite, "-")
	sum := sha256.New()
	said := &proc.Tail{}
	p.say(fmt.Sprintf("building a root of Debian %s from packages%s; it is kept", r.Suite, with(r.sorted())))
	err = run(ctx, func(cmd *exec.Cmd) {
		cmd.Dir = build
		cmd.Env = append(cleanEnv(), "TMPDIR="+build, "SOURCE_DATE_EPOCH="+sourceDate, "DEBIAN_FRONTEND=noninteractive")
		cmd.Stderr = said
		cmd.ExtraFiles = []*os.File{w.lock} // see workspace
		// Packages' scripts run in the chroot. With a mount namespace of their own, the host does not see what they or mmdebstrap
		// mount, and no mount blocks the removal of the folder. With a process namespace, all processes that they started die with
		// mmdebstrap.
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}, func(stdout io.Reader) error {
		return u.layer(io.TeeReader(stdout, sum), false)
	}, tool, args...)
	if err != nil {
		return nil, noSpace(fmt.Errorf("%w%s", err, outputTail(said)), s.root)
	}
	if u.entries == 0 {
		return nil, fmt.Errorf("mmdebstrap: the archive is empty%s", outputTail(said))
	}
	rec := &record{Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Config: Config{Env: withPath(nil), Home: "/root"}}
	if err := u.complete(rec); err != nil {
		return nil, err
	}
	return rec, s.keep(w, *rec)
}

// complete finishes the unpacking: the folders that every guest needs, the folders' times, and the record's facts.
func (u *unpacker) complete(rec *record) error {
	warnings, err := u.prepare()
	if err != nil {
		return err
	}
	if err := u.finish(); err != nil {
		return err
	}
	rec.Size = u.total
	rec.Warnings = append(append(rec.Warnings, u.warnings()...), warnings...)
	return nil
}

// cleanEnv is our environment without what would make two builds differ.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(k, "LC_") || k == "LANG" || k == "LANGUAGE" || k == "TMPDIR" ||
			k == "SOURCE_DATE_EPOCH" || k == "DEBIAN_FRONTEND" || strings.HasPrefix(k, "PERL5")
	})
}
