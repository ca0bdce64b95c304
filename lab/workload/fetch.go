package workload

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tare/lab/image"
)

// Fetched is a file that Tare fetches once from a public registry, with the registry's protocol, and identifies by its digest.
type Fetched struct {
	Name   string `yaml:"name" jsonschema:"required"` // its path in {work}
	PyPI   string `yaml:"pypi"`                       // a wheel, "package==version", from which Tare takes the member
	Maven  string `yaml:"maven"`                      // a file in Maven Central, "group:artifact:version[:packaging[:classifier]]"; default packaging: jar
	Member string `yaml:"member"`                     // the path of one file in the archive; empty, with maven: the file itself
	SHA256 string `yaml:"sha256"`                     // digest of the file that Tare takes
	Exec   bool   `yaml:"exec"`                       // whether it is a program
}

const (
	mavenCentral = "https://repo1.maven.org/maven2/"
	mostFetched  = 4 << 30 // bytes of one file
)

var (
	pypiOK  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.+!-]{0,49}$`)
	mavenOK = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*){2,4}$`)
	sumOK   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (in *Fetched) validate() error {
	switch {
	case !fileOK.MatchString(in.Name):
		return fmt.Errorf("%q: must be the plain name of a file", in.Name)
	case !sumOK.MatchString(in.SHA256):
		return fmt.Errorf("%s: sha256: must be 64 hexadecimal digits", in.Name)
	case (in.PyPI == "") == (in.Maven == ""):
		return fmt.Errorf("%s: needs either pypi: package==version or maven: group:artifact:version", in.Name)
	case in.PyPI != "" && !pypiOK.MatchString(in.PyPI):
		return fmt.Errorf("%s: pypi: %q: must be package==version", in.Name, in.PyPI)
	case in.PyPI != "" && in.Member == "":
		return fmt.Errorf("%s: member: is missing: write the path of a file in the package's wheel", in.Name)
	case in.Maven != "" && (!mavenOK.MatchString(in.Maven) || strings.Contains(in.Maven, "..")):
		return fmt.Errorf("%s: maven: %q: must be group:artifact:version, optionally followed by :packaging and :classifier", in.Name, in.Maven)
	}
	return nil
}

// inputs are the workload's further files: those in its description, and those in the list that it names. A line of
// the list is a digest, Maven coordinates and, for one file of an archive, its path there. # begins a comment.
func (w *Workload) inputs() ([]Fetched, error) {
	all := append([]Fetched{}, w.Inputs...)
	if w.InputsFrom == "" {
		return all, nil
	}
	where := path.Join(w.origin, w.InputsFrom)
	text, err := w.file(w.InputsFrom)
	if err != nil {
		return nil, fmt.Errorf("%s: inputs_from: %w", w.origin, err)
	}
	names := map[string]bool{}
	for _, name := range w.placed() {
		names[name] = true
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 || len(f) > 3 {
			return nil, fmt.Errorf("%s:%d: must be a sha256, Maven coordinates and at most one member", where, n)
		}
		in := Fetched{SHA256: f[0], Maven: f[1]}
		if len(f) == 3 {
			in.Member, in.Name = f[2], path.Base(f[2])
		} else {
			in.Name = path.Base(mavenPath(f[1]))
		}
		if err := in.validate(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", where, n, err)
		}
		if names[in.Name] {
			return nil, fmt.Errorf("%s:%d: %s is listed twice, or another file of the workload has that name", where, n, in.Name)
		}
		names[in.Name] = true
		all = append(all, in)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return all, nil
}

// mavenPath is the path of an artifact's file in a repository with Maven's layout.
func mavenPath(coordinates string) string {
	f := strings.Split(coordinates, ":")
	if len(f) < 3 {
		return ""
	}
	packaging, classifier := "jar", ""
	if len(f) > 3 {
		packaging = f[3]
	}
	if len(f) > 4 {
		classifier = "-" + f[4]
	}
	return path.Join(strings.ReplaceAll(f[0], ".", "/"), f[1], f[2], f[1]+"-"+f[2]+classifier+"."+packaging)
}

// fetch fetches the file, unless the cache has it, and returns its path in the cache.
func (in *Fetched) fetch(ctx context.Context, cache string, say image.Progress) (_ string, err error) {
	from := in.PyPI
	if from == "" {
		from = in.Maven
	}
	if from == "" {
		return "", errors.New("the workload has none: name a file with --input FILE")
	}
	kept := filepath.Join(cache, in.SHA256)
	if f, err := os.Open(kept); err == nil {
		defer f.Close()
		if sum, err := digest(f); err == nil && sum == in.SHA256 {
			return kept, nil
		}
	}
	say("fetching " + from)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(cache, fetchPrefix)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var archive string
	if in.PyPI != "" {
		archive, err = wheel(ctx, in.PyPI, tmp)
	} else {
		archive, err = mavenFile(ctx, in.Maven, tmp)
	}
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp(tmp, "member-")
	if err != nil {
		return "", err
	}
	defer out.Close()
	what := strings.TrimSuffix(from+": "+in.Member, ": ")
	var sum string
	err = member(ctx, archive, in.Member, func(r io.Reader) (err error) {
		sum, err = digest(io.TeeReader(io.LimitReader(r, mostFetched), out))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if sum != in.SHA256 {
		return "", fmt.Errorf("%s: sha256 %s: must be %s", what, sum, in.SHA256)
	}
	if err := out.Sync(); err != nil {
		return "", err
	}
	if err := os.Chmod(out.Name(), 0o644); err != nil {
		return "", err
	}
	return kept, os.Rename(out.Name(), kept)
}

// wheel fetches a package with pip, so the user's index and proxy settings apply.
func wheel(ctx context.Context, name, tmp string) (string, error) {
	cmd := exec.CommandContext(ctx, "pip3", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--dest", tmp, "--", name)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.WaitDelay = 5 * time.Second
	if said, err := cmd.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("fetching %s needs pip3, which is not installed: apt-get install python3-pip", name)
		}
		return "", fmt.Errorf("pip3 download %s: %w: %s", name, err, lastLine(said))
	}
	wheels, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip3 download %s: brought %d wheels: must be one", name, len(wheels))
	}
	return wheels[0], nil
}

// mavenFile fetches a file from Maven Central. It needs no client, because the layout gives the address.
func mavenFile(ctx context.Context, coordinates, tmp string) (_ string, err error) {
	url := mavenCentral + mavenPath(coordinates)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", coordinates, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("fetching %s: %s answered %s", coordinates, url, resp.Status)
	}
	file := filepath.Join(tmp, path.Base(url))
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, io.LimitReader(resp.Body, mostFetched)); err != nil {
		return "", fmt.Errorf("fetching %s: %w", coordinates, err)
	}
	return file, nil
}

// member calls read with one file of an archive: a zip, such as a wheel or a jar, or a compressed tar. An empty name stands for
// the archive itself. It ends with its context, because even a small archive may expand to a lot before the member.
func member(ctx context.Context, archive, name string, read func(io.Reader) error) error {
	tarred := strings.HasSuffix(archive, ".tar.gz") || strings.HasSuffix(archive, ".tgz")
	if name != "" && !tarred {
		z, err := zip.OpenReader(archive)
		if err != nil {
			return err
		}
		defer z.Close()
		f, err := z.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return read(&until{ctx, f})
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if name == "" {
		return read(&until{ctx, f})
	}
	g, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	t := tar.NewReader(&until{ctx, g})
	for {
		h, err := t.Next()
		if err == io.EOF {
			err = fmt.Errorf("it has no %s", name)
		}
		if err != nil {
			return err
		}
		if path.Clean(h.Name) == path.Clean(name) && h.Typeflag == tar.TypeReg {
			return read(t)
		}
	}
}

// until reads until its context ends.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u *until) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(b)
}

func digest(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
