//go:build linux

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/studies"
)

const readme = "../../README.md"

// typed is a command line of the documentation, as its reader types it.
type typed struct {
	at   string // file and line
	line string
}

var (
	isCommand = regexp.MustCompile(`^(    )?(sudo )?((bin/)?tare|make) `)
	isSpan    = regexp.MustCompile("`(?:sudo )?(tare [^`]+)`")
	imageFlag = regexp.MustCompile(`--image ([a-z][a-z0-9:._-]*)`)
	outFlag   = regexp.MustCompile(`--out ([^ ]+)`)
)

// commandsOf are the commands in a file's fenced and indented blocks. A line that ends in \\ continues on the next.
func commandsOf(t *testing.T, path string) (all []typed) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fenced, begun := false, ""
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			continue
		case begun == "" && (!isCommand.MatchString(line) || !fenced && line[0] != ' '):
			continue
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			begun += rest
			continue
		}
		all = append(all, typed{at: filepath.Base(path) + ":" + strconv.Itoa(i+1), line: strings.TrimSpace(begun + line)})
		begun = ""
	}
	return all
}

// shell is a shell whose tare is a given program, and whose sudo only runs its command.
type shell struct {
	t    *testing.T
	path string // a folder with both
}

func newShell(t *testing.T, tare string) *shell {
	t.Helper()
	s := &shell{t: t, path: t.TempDir()}
	for program, text := range map[string]string{"sudo": `exec "$@"`, "tare": tare} {
		if err := os.WriteFile(filepath.Join(s.path, program), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// words are the arguments that the shell gives to each tare of a line.
func (s *shell) words(line string) (all [][]string) {
	s.t.Helper()
	dir := s.t.TempDir()
	cmd := exec.Command("sh", "-ec", strings.ReplaceAll(line, "bin/tare ", "tare "))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + s.path + ":/usr/bin:/bin", "ARGS=" + filepath.Join(dir, "args")}
	if said, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("sh: %s: %v: %s", line, err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		s.t.Fatalf("%s: it calls no tare: %v", line, err)
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x01"), "\x01") {
		all = append(all, strings.Split(strings.TrimSuffix(call, "\x00"), "\x00"))
	}
	return all
}

// parsed lets the program parse a command line without running it: the command, its flags with their values, the number of
// arguments.
func parsed(args []string) error {
	c, rest, err := rootCommand().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err == nil && c.PreRunE != nil {
		err = c.PreRunE(c, c.Flags().Args())
	}
	if err == nil && c.Name() == runCommand().Name() && !strings.Contains(c.Flags().Arg(0), "/") {
		_, err = studyfile.Load(studies.FS, c.Flags().Arg(0), session.Known)
	}
	return err
}

// TestCommandsOfTheDocumentation checks that the program accepts each command of the README and the documents, with its flags and
// study.
func TestCommandsOfTheDocumentation(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/tutorials/*.md"} {
		of, err := filepath.Glob(pattern)
		if err != nil || len(of) == 0 {
			t.Fatalf("%s: %d files: %v", pattern, len(of), err)
		}
		paths = append(paths, of...)
	}
	sh := newShell(t, `{ printf '%s\0' "$@"; printf '\1'; } >>"$ARGS"`)
	n := 0
	for _, path := range append(paths, readme) {
		for _, c := range commandsOf(t, path) {
			if strings.Contains(c.line, "make ") { // a target of the Makefile
				continue
			}
			for _, args := range sh.words(c.line) {
				n++
				if err := parsed(args); err != nil {
					t.Errorf("%s: %s: %v", c.at, c.line, err)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("%d commands found", n)
	}
}

// TestTutorialsAreShort: a tutorial answers its question with one or two commands, and says how to read the answer and what to do next.
func TestTutorialsAreShort(t *testing.T) {
	pages, err := filepath.Glob("../../docs/tutorials/[a-z]*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d tutorials: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		answer, rest, found := strings.Cut(string(text), "\n## How to read it\n")
		if !found || !strings.Contains(rest, "\n## Next\n") {
			t.Errorf("%s lacks the section How to read it, or the section Next after it", page)
		}
		n := 0
		for _, c := range commandsOf(t, page) {
			if strings.Contains(strings.ReplaceAll(answer, "\\\n", ""), c.line) { // a command may go on in the next line
				n++
			}
		}
		if n < 1 || n > 2 {
			t.Errorf("%s answers with %d commands, want 1 or 2", page, n)
		}
	}
}

// TestReadmeNamesCommands checks that commands and flags named in the README exist.
func TestReadmeNamesCommands(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, `{ printf '%s\0' "$@"; printf '\1'; } >>"$ARGS"`)
	for _, span := range isSpan.FindAllSubmatch(text, -1) {
		line := strings.ReplaceAll(string(span[1]), "PORT", "8080")
		args := sh.words(line)[0]
		c, rest, err := rootCommand().Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s: %v", span[1], err)
		}
	}
	answer := false // a table of it stands as the program prints it
	for i, line := range strings.Split(string(text), "\n") {
		answer = strings.HasPrefix(line, "<!-- the answer") || answer && !strings.HasPrefix(line, "<!-- until here")
		if n := len([]rune(line)); n > 100 && !(answer && n <= 110 && strings.HasPrefix(line, "  ")) {
			t.Errorf("README.md:%d has %d columns; at most 100 are allowed", i+1, n)
		}
	}
}

// brief limits the README's commands to a minute; its other measurements are only planned here.
const brief = "--time-budget 30s"

// TestWithDockerReadme follows the README in order, in an empty folder. Its images are the test's own, from a registry on loopback
// under the README's names, and so are its archive, its container and its Compose file. It skips make, which installs; loads over
// ssh; kernels, which the reader has; and the disk image, which is made from packages.
func TestWithDockerReadme(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	all := commandsOf(t, readme)
	img := imageIn(t, h.image)
	from := serveImages(t, img, all)
	sh, list := newShell(t, `exec `+h.tare+` "$@"`), newShell(t, `{ printf '%s\0' "$@"; printf '\1'; } >>"$ARGS"`)
	dir := filepath.Join(h.dir, "reader")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	container, runs := readersFiles(t, dir, img, from)
	var unmade []string // results of commands that were only planned
	for _, c := range all {
		line := imageFlag.ReplaceAllString(c.line, "--image "+from+"/$1")
		line = strings.ReplaceAll(line, "--from-container web ", "--from-container "+container+" ")
		line = strings.ReplaceAll(line, "observe web", "observe "+runs+" --for 1s")
		measures := regexp.MustCompile(`tare (run|bench|fit) `).MatchString(line)
		switch {
		case strings.Contains(line, "make "), strings.Contains(line, "ssh://"), strings.Contains(line, "tare image "):
			continue
		case strings.Contains(line, "--vm-kernel "):
			if out := outFlag.FindStringSubmatch(line); out != nil {
				unmade = append(unmade, out[1])
			}
			continue
		case measures && !strings.Contains(line, brief):
			if out := outFlag.FindStringSubmatch(line); out != nil {
				unmade = append(unmade, out[1])
			}
			if line = asPlan(line); line == "" {
				continue
			}
		case !strings.Contains(line, "tare study ") && slices.ContainsFunc(list.words(line)[0], func(arg string) bool { return slices.Contains(unmade, arg) }):
			continue // nothing to read; TestCommandsOfTheDocumentation has read its flags
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), h.env()...), "PATH="+sh.path+":"+os.Getenv("PATH"))
		began := time.Now()
		said, err := cmd.CombinedOutput()
		t.Logf("%s: %.1f s: %s", c.at, time.Since(began).Seconds(), c.line)
		if err != nil && !(strings.Contains(line, "tare advise ") && strings.Contains(string(said), noAdvice)) {
			t.Errorf("%s: %s: %v\n%s", c.at, line, err, said)
		}
	}
}

// noAdvice is the answer of tare advise on a host that is too noisy. The host's noise does not show whether the README is right.
const noAdvice = "can be ranked, so there is nothing to apply"

// asPlan turns a command that measures into one that only prints its plan.
func asPlan(line string) string {
	if runCommand().Flags().Lookup("plan") == nil {
		return ""
	}
	return regexp.MustCompile(`tare (run|bench|fit) `).ReplaceAllString(line, "$0--plan ")
}

// readersFiles makes the files of the README's reader: an archive of an image, a Compose file, and two containers, whose names it
// returns; the second one runs.
func readersFiles(t *testing.T, dir string, img v1.Image, from string) (container, runs string) {
	t.Helper()
	container = "tare-test-readme"
	tag, err := name.NewTag(container)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "postgres.tar")
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		t.Fatal(err)
	}
	compose := "services: {web: {image: " + from + "/nginx:alpine, expose: [8080]}}\n"
	if err := os.WriteFile(filepath.Join(dir, "compose.yaml"), []byte(compose), 0o644); err != nil {
		t.Fatal(err)
	}
	remove := func() {
		exec.Command("docker", "rm", "-f", container, container+"-runs").Run()
		exec.Command("docker", "rmi", "-f", tag.Name()).Run()
	}
	remove() // what a test left that was killed
	t.Cleanup(remove)
	for _, args := range [][]string{{"load", "--input", archive}, {"create", "--name", container, "--expose", "8080", tag.Name(), "true"}, {"run", "-d", "--name", container + "-runs", tag.Name(), "sleep", "1000"}} {
		if said, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %q: %v: %s", args, err, said)
		}
	}
	return container, container + "-runs"
}

// imageIn is the image of a layout folder.
func imageIn(t *testing.T, folder string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// serveImages serves an image under every name that follows --image, and returns the registry's address.
func serveImages(t *testing.T, img v1.Image, all []typed) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	for _, c := range all {
		for _, flag := range imageFlag.FindAllStringSubmatch(c.line, -1) {
			ref, err := name.ParseReference(address + "/" + flag[1])
			if err == nil {
				err = remote.Write(ref, img)
			}
			if err != nil {
				t.Fatalf("%s: image %s: %v", c.at, flag[1], err)
			}
		}
	}
	return address
}
