//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/notebook"
)

// TestWithDockerWhatACommandIsGiven: the environment, a volume, the folder and the preparation are the same on bare metal and in a container.
func TestWithDockerWhatACommandIsGiven(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	h.write("conf/greeting", "hello")
	h.write("env", "A=from file\nB='b'\n")
	out := h.must("bench", "--image", h.image, "--platforms", "bm,cn:docker,cn:runc", "--provisioning", "set", "--rounds", "1", "--out", "R",
		"--env-file", "env", "--env", "A=x y", "--volume", "./conf:/srv/conf:ro", "--prepare", `sh -c 'echo "$A" >prepared'`, "--",
		"sh", "-c", `test "$(cat prepared)" = "x y" && test "$B" = "'b'" && test "$(cat /srv/conf/greeting)" = hello && rm prepared`)
	for _, tr := range h.trials("R") {
		if tr.Failure != nil {
			t.Errorf("%s: %v", tr.Treatment, tr.Failure)
		}
	}
	f, err := notebook.Read(filepath.Join(h.dir, "R"))
	if err != nil {
		t.Fatal(err)
	}
	for label, img := range f.Study.Images {
		if img.Base == "" || img.Base == img.Digest {
			t.Errorf("%s: %+v does not say what the image was before", label, img)
		}
	}
	if h.write("conf/greeting", "Hello"); !strings.Contains(out, "Docker, CPU set") {
		t.Error(out)
	}
	// Another content of a volume is another study.
	_, errs, status := h.run("bench", "--image", h.image, "--platforms", "bm,cn:docker,cn:runc", "--provisioning", "set", "--rounds", "1", "--out", "R",
		"--env-file", "env", "--env", "A=x y", "--volume", "./conf:/srv/conf:ro", "--prepare", `sh -c 'echo "$A" >prepared'`, "--",
		"sh", "-c", `test "$(cat prepared)" = "x y" && test "$B" = "'b'" && test "$(cat /srv/conf/greeting)" = hello && rm prepared`)
	if status == 0 || !strings.Contains(errs, "has changed") {
		t.Errorf("%d: %s", status, errs)
	}
	_, errs, status = h.run("bench", "--image", h.image, "--platforms", "bm", "--rounds", "1", "--out", "F", "--prepare", "sh -c 'echo no; exit 3'", "--", "true")
	if status == 0 || !strings.Contains(errs, "its preparation (--prepare) failed: exit status 3: no") {
		t.Errorf("%d: %s", status, errs)
	}
}

// TestAServiceGetsARequest: method, header and body reach a service of the user's own, whose answers come from a volume.
func TestAServiceGetsARequest(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	// As an error counts what was not sent as asked for.
	h.write("www/cgi-bin/ask", "#!/bin/busybox sh\nread -r body\nif [ \"$REQUEST_METHOD,$CONTENT_TYPE,$body,$TOKEN\" = 'PUT,text/x,hey,secret' ]; then printf 'Content-Type: text/plain\\r\\n\\r\\nright'; else printf 'Status: 400 wrong\\r\\n\\r\\n'; fi\n")
	if err := os.Chmod(filepath.Join(h.dir, "www/cgi-bin/ask"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.write("body", "hey\n")
	h.write("study.yaml", `name: mine
workloads:
  - name: web
    image: ./image
    command: [busybox, httpd, -f, -p, "18083", -h, /www]
    service: 18083
    load: /cgi-bin/ask
    env: [TOKEN=secret]
    volumes: [./www:/www]
    request: {method: PUT, headers: ["Content-Type: text/x"], body_file: body}
platforms: [{platform: bm}, {platform: cn, engines: [crun], provisioning: [pinned]}]
instances: [1/1GB]
capacity: {objective: p99=2s, from: 5, to: 20000, raise: 100%, hold: 1s}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 1m}
`)
	h.must("run", "./study.yaml", "--out", "R")
	for _, tr := range h.trials("R") {
		if tr.Failure != nil || tr.Figures["capacity_rate"] < 5 {
			t.Errorf("%+v", tr)
		}
	}
}

// TestWithDockerAContainerThatExists: its image, command, environment, mounts, folder, user and limits are taken over, whether it runs or not.
func TestWithDockerAContainerThatExists(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	docker := func(args ...string) {
		t.Helper()
		if said, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %q: %v: %s", args, err, said)
		}
	}
	name := "tare-test-origin"
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("sh", "-c", `tar -C "$(dirname "$1")" -ch busybox | docker import - "$2"`, "sh", busybox, name).CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, said)
	}
	t.Cleanup(func() { exec.Command("docker", "rmi", "-f", name).Run() })
	h.write("conf/greeting", "hello")
	check := `test "$(/busybox id -u):$A:$(/busybox pwd):$(/busybox cat /srv/conf/greeting)" = 7:x:/srv:hello`
	docker("create", "--name", name, "--env", "A=x", "--volume", h.dir+"/conf:/srv/conf", "--workdir", "/srv", "--user", "7", "--memory", "128m", "--cpus", "0.5", "--read-only",
		name, "/busybox", "sh", "-c", check)
	t.Cleanup(func() { exec.Command("docker", "rm", "-f", name).Run() })
	out, errs, status := h.run("bench", "--from-container", name, "--platforms", "bm,cn:docker", "--rounds", "1", "--out", "R")
	if status != 0 || !strings.Contains(out, "0.5 CPUs, 128 MB") || !strings.Contains(errs, name+": not taken over: --read-only") {
		t.Errorf("%d: %s%s", status, out, errs)
	}
	for _, tr := range h.trials("R") {
		if tr.Failure != nil {
			t.Errorf("%s: %v", tr.Treatment, tr.Failure)
		}
	}
	if _, errs, status := h.run("bench", "--from-container", "no-such-container"); status == 0 || !strings.Contains(errs, "there is no container no-such-container; `docker ps -a` names those that exist") {
		t.Errorf("%d: %s", status, errs)
	}
}
