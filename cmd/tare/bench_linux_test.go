package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tare/lab/studyfile"
)

// benchOf is the study that `tare bench` makes from these arguments.
func benchOf(args ...string) (*studyfile.Spec, error) {
	var b benching
	c := &cobra.Command{Use: "bench"}
	b.flags(c)
	c.SetFlagErrorFunc(flagError)
	if err := c.ParseFlags(args); err != nil {
		return nil, err
	}
	b.set = c.Flags().Changed
	return b.spec(context.Background(), c.Flags().Args())
}

// The study has the service's settings as the flags gave them.
func TestBenchSettingsOfAService(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("# of the service\nA=from file\nB='quoted'\nMINE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MINE", "my own")
	spec, err := benchOf("--image", "web", "--platforms", "bm,cn:docker", "--service", "8080", "--load", `sh -c 'ask "$1" {rate}' ask {address}`,
		"--env-file", file, "--env", "A=1 2", "--env", "MINE", "--prepare", `sh -c "touch /tmp/a"`, "--network", "bridge,host", "--provisioning", "set,quota")
	if err != nil {
		t.Fatal(err)
	}
	use := spec.Workloads[0]
	for _, c := range []struct{ got, want []string }{
		{use.Ask, []string{"sh", "-c", `ask "$1" {rate}`, "ask", "{address}"}},
		{use.Env, []string{"A=1 2", "B='quoted'", "MINE=my own"}},
		{use.Prepare, []string{"sh", "-c", "touch /tmp/a"}},
		{spec.Platforms[0].Networks, nil},
		{spec.Platforms[1].Networks, []string{"bridge", "host"}},
		{spec.Platforms[1].Provisioning, []string{"pinned", "vanilla"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if !strings.Contains(spec.Source, "A=1 2") {
		t.Errorf("the study does not record the environment: %s", spec.Source)
	}
}

// A service is measured in as many rounds as fit into a time budget, unless a rule ends the run.
func TestRoundsOfAService(t *testing.T) {
	for flags, want := range map[string]studyfile.Rounds{
		"":                                {Floor: 6, Cap: 6, Emulated: 1},
		"--rate 200":                      {Floor: 10, Cap: 10, Emulated: 1},
		"--time-budget 5m":                {Floor: 200, Cap: 200, Emulated: 1},
		"--time-budget 5m --rate 200":     {Floor: 200, Cap: 200, Emulated: 1},
		"--time-budget 5m --precision 5%": {Floor: 6, Cap: 6, Emulated: 1},
		"--time-budget 5m --decide 5%":    {Floor: 6, Cap: 6, Emulated: 1},
	} {
		spec, err := benchOf(append([]string{"--image", "web", "--service", "8080", "--load", "/"}, strings.Fields(flags)...)...)
		if err != nil {
			t.Fatal(err)
		}
		if spec.Design.Rounds != want {
			t.Errorf("%q: %+v, want %+v", flags, spec.Design.Rounds, want)
		}
	}
}

// VMs of two kernels run the command several times each, in as many rounds as fit into a time budget.
func TestDesignForTwoKernels(t *testing.T) {
	for flags, want := range map[string]studyfile.Rounds{
		"":                            {Floor: 5, Cap: 20, Emulated: 1},
		"--vm-kernel a --vm-kernel b": {Floor: 5, Cap: 20, Emulated: 1},
		"--vm-kernel a --vm-kernel b --time-budget 5m":                {Floor: 5, Cap: 200, Emulated: 1},
		"--vm-kernel a --vm-kernel b --time-budget 5m --precision 5%": {Floor: 5, Cap: 20, Emulated: 1},
		"--vm-kernel a --time-budget 5m":                              {Floor: 5, Cap: 20, Emulated: 1},
	} {
		spec, err := benchOf(append(strings.Fields(flags), "--platforms", "vm", "--", "true")...)
		if err != nil {
			t.Fatal(err)
		}
		trials := 1
		if strings.Count(flags, "--vm-kernel") == 2 {
			trials = 10
		}
		if spec.Design.Rounds != want || spec.Design.Trials != trials {
			t.Errorf("%q: %+v and %d trials, want %+v and %d", flags, spec.Design.Rounds, spec.Design.Trials, want, trials)
		}
	}
}

// An error says what is wrong and what is allowed.
func TestErrorsInFlagsOfBench(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("A=1\nexport B=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--env", "=1"}, `--env "=1": must be KEY=VALUE, with no blank in KEY`},
		{[]string{"--env", "NO_SUCH_VARIABLE"}, "--env NO_SUCH_VARIABLE: your environment has no such variable (sudo removes most); write NO_SUCH_VARIABLE=VALUE"},
		{[]string{"--env-file", file}, "--env-file " + file + `:2: "export B=2": must be KEY=VALUE, with no blank in KEY`},
		{[]string{"--env-file", "/no/such"}, "--env-file: open /no/such: no such file or directory"},
		{[]string{"--prepare", "sh -c 'a"}, `--prepare: "sh -c 'a" has a ' without a second one; write both, or \' for the character itself`},
		{[]string{"--prepare", " "}, `--prepare: is empty: write a command, such as 'sh -c "…"'`},
		{[]string{"--service", "80", "--load", `a "b {rate}`}, `--load: "a \"b {rate}" has a " without a second one; write both, or \" for the character itself`},
		{[]string{"--network", "bridge,lan"}, `--network "lan": must be one of bridge, `},
		{[]string{"--service", "web", "--load", "/"}, `--service "web": must be a port from 1 to 65535; with --compose the name of a service, or NAME:PORT`},
		{[]string{"--service", "0", "--load", "/"}, `--service "0": must be a port from 1 to 65535`},
		{[]string{"--from-container", "web"}, "--image: the container or the Compose file names the image: leave it out"},
		{[]string{"--provisioning", "all"}, `--provisioning "all": must be quota, set, both or whole`},
		{[]string{"--provisioning", "whole"}, "provisioning whole: has no limits, so its size is the host's: add host to instances:"},
	} {
		if _, err := benchOf(append(c.args, "--image", "web", "--", "work")...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.args, err, c.want)
		}
	}
}

// A service of a Compose file is the same study as one that flags describe.
func TestBenchOfAComposeService(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"compose.yaml": `services:
  web:
    image: ${IMAGE}
    command: serve --all
    environment: {A: "1"}
    volumes: [./conf:/etc/web, /var/run/docker.sock:/var/run/docker.sock, ./tmp:/tmp/x]
    ports: ["8080:80"]
    cpuset: "0"
    mem_limit: 256m
    depends_on: [db]
  two: {image: x, expose: [80, 443]}
  job: {image: x, entrypoint: [/work]}
`,
		".env": "IMAGE='web:1'\n", "conf": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "compose.yaml")
	spec, err := benchOf("--compose", file, "--service", "web", "--load", "/", "--env", "B=2", "--platforms", "bm,cn")
	if err != nil {
		t.Fatal(err)
	}
	use := spec.Workloads[0]
	if use.Image != "web:1" || use.Port != 80 || !slices.Equal(use.Args, []string{"serve", "--all"}) || !slices.Equal(use.Env, []string{"A=1", "B=2"}) ||
		!slices.Equal(use.Volumes, []string{filepath.Join(dir, "conf") + ":/etc/web"}) || !slices.Equal(spec.Instances, []string{"1/256MB"}) ||
		!slices.Equal(spec.Platforms[1].Provisioning, []string{"pinned"}) {
		t.Errorf("%+v", spec)
	}
	if spec, err = benchOf("--compose", file, "--service", "job"); err != nil || spec.Workloads[0].Port != 0 || !slices.Equal(spec.Workloads[0].Command, []string{"/work"}) {
		t.Errorf("%+v, %v", spec, err)
	}
	if spec, err = benchOf("--compose", file, "--service", "two:443", "--load", "/", "--instances", "2/1GB"); err != nil || spec.Workloads[0].Port != 443 || spec.Instances[0] != "2/1GB" {
		t.Errorf("%+v, %v", spec, err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--service", "web"}, "web listens on port 80: measure it as a service with --load PATH, or name a command that ends after --"},
		{[]string{"--service", "two", "--load", "/"}, "two listens on the ports 80 443: name one with --service two:PORT"},
		{[]string{"--service", "db"}, `has no service "db"; it has job, two, web`},
		{nil, "--compose: name a service of the file with --service NAME"},
		{[]string{"--service", "web", "--from-container", "x"}, "only one of them is allowed"},
	} {
		if _, err := benchOf(append(c.args, "--compose", file)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.args, err, c.want)
		}
	}
}
