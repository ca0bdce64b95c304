//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/notebook"
)

// otherMachine is a network namespace with an ssh server, as a machine beside this one. The file system is the same.
type otherMachine struct {
	t                *testing.T
	dir, name, sshd  string
	address, outside string // its own, and this host's at the other end of the cable
	server           *exec.Cmd
}

// must runs a command of the host's.
func (m *otherMachine) must(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func newMachine(t *testing.T) *otherMachine {
	t.Helper()
	need(t, os.Geteuid() == 0, "root")
	need(t, has("ssh") && has("ip"), "ssh and ip (openssh-client, iproute2)")
	m := &otherMachine{t: t, dir: t.TempDir(), name: fmt.Sprintf("taretest%d", os.Getpid()), sshd: "/usr/sbin/sshd", address: "10.213.77.2", outside: "10.213.77.1"}
	_, err := os.Stat(m.sshd)
	need(t, err == nil, "sshd (openssh-server)")
	m.must("ip", "netns", "add", m.name)
	t.Cleanup(func() {
		m.kill()
		m.must("ip", "netns", "del", m.name)
	})
	link := fmt.Sprintf("tt%d", os.Getpid())
	m.must("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", m.name)
	m.must("ip", "addr", "add", m.outside+"/30", "dev", link)
	m.must("ip", "link", "set", link, "up")
	m.must("ip", "-n", m.name, "addr", "add", m.address+"/30", "dev", "eth0")
	m.must("ip", "-n", m.name, "link", "set", "eth0", "up")
	m.must("ip", "-n", m.name, "link", "set", "lo", "up")
	for _, key := range []string{"host", "user", "stranger"} {
		m.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(m.dir, key))
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // which sshd wants, and its service makes
		t.Fatal(err)
	}
	m.write("sshd_config", fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %[2]s/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n", m.address, m.dir), 0o600)
	m.write("known", m.address+" "+m.must("cat", filepath.Join(m.dir, "host.pub")), 0o600)
	m.as("user")
	t.Setenv("PATH", m.dir+":"+os.Getenv("PATH"))
	m.serve()
	return m
}

func (m *otherMachine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// as has this host's ssh use a key, as its user's configuration would.
func (m *otherMachine) as(key string) {
	m.t.Helper()
	m.write("config", fmt.Sprintf("Host *\n IdentityFile %s/%s\n IdentitiesOnly yes\n UserKnownHostsFile %[1]s/known\n", m.dir, key), 0o600)
	m.write("ssh", fmt.Sprintf("#!/bin/sh\nexec /usr/bin/ssh -F %s/config \"$@\"\n", m.dir), 0o755)
}

// serve starts the ssh server, and returns when it listens.
func (m *otherMachine) serve() {
	m.t.Helper()
	m.server = exec.Command("ip", "netns", "exec", m.name, m.sshd, "-D", "-e", "-f", filepath.Join(m.dir, "sshd_config"))
	said, err := m.server.StderrPipe()
	if err == nil {
		err = m.server.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	heard := make([]byte, 256)
	if n, err := said.Read(heard); !bytes.Contains(heard[:n], []byte("Server listening")) {
		m.t.Fatalf("sshd: %q, %v", heard[:n], err)
	}
	go func() {
		var all bytes.Buffer
		all.ReadFrom(said)
	}()
}

// kill kills the ssh server, and all that serves a connection.
func (m *otherMachine) kill() {
	for _, pid := range strings.Fields(m.must("ip", "netns", "pids", m.name)) {
		if cmd, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.HasPrefix(string(cmd), "sshd:") || strings.HasPrefix(string(cmd), m.sshd) {
			var n int
			fmt.Sscan(pid, &n)
			syscall.Kill(n, syscall.SIGKILL) // it may have ended
		}
	}
	m.server.Wait()
}

// empty waits until no process is left there but the server's.
func (m *otherMachine) empty() {
	m.t.Helper()
	var left []string
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, pid := range strings.Fields(m.must("ip", "netns", "pids", m.name)) {
			if cmd, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && !strings.Contains(string(cmd), "sshd") {
				left = append(left, string(cmd))
			}
		}
		if _, err := os.Stat("/var/lib/tare-load"); len(left) == 0 && os.IsNotExist(err) {
			return
		}
	}
	m.t.Errorf("on the load's machine there is left: %q, /var/lib/tare-load: %q", left, m.must("sh", "-c", "ls -R /var/lib/tare-load 2>&1 | head -n 20"))
}

// TestALoadFromAnotherMachine: the load of a user's own service runs on another machine, whose ssh server is killed in the middle.
func TestALoadFromAnotherMachine(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	m := newMachine(t)
	h.shop()
	h.write("shop/workload.yaml", strings.Replace(shop, `"20", "{page}"`, `"20000", "{page}"`, 1))
	h.write("study.yaml", `name: away
workloads: [{name: ./shop}]
platforms:
  - platform: bm
  - {platform: cn, engines: [crun], provisioning: [pinned], networks: [bridge, host]}
instances: [1/1GB]
load_from: ssh://root@`+m.address+`
design: {rounds: {floor: 2, cap: 2}, trials: 1, warmups: 0, timeout: 1m}
`)
	rules := m.must("iptables-save")
	done := make(chan struct{})
	var errs string
	var status int
	go func() {
		defer close(done)
		_, errs, status = h.run("run", "./study.yaml", "--out", "R", "--seed", "1")
	}()
	// In the middle of the first trial: the rehearsal is over when there is a folder.
	for killed := false; !killed; {
		select {
		case <-done:
			t.Fatalf("it ended before a load was seen: %d, %s", status, errs)
		case <-time.After(5 * time.Millisecond):
		}
		if !notebook.Exists(filepath.Join(h.dir, "R")) {
			continue
		}
		for _, pid := range strings.Fields(m.must("ip", "netns", "pids", m.name)) {
			cmd, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			killed = killed || bytes.Contains(cmd, []byte("\x0020000\x00"))
		}
	}
	m.kill()
	m.serve()
	<-done
	if status != 1 || !strings.Contains(errs, "1 trials failed") {
		t.Errorf("exit status %d: %s", status, errs)
	}
	failed, networks := 0, map[string]bool{}
	all := h.trials("R")
	for _, tr := range all {
		networks[tr.Treatment] = true
		if tr.Failure != "" {
			failed++
			if !strings.Contains(tr.Failure, "the connection was lost: ") {
				t.Errorf("%s failed: %s", tr.Treatment, tr.Failure)
			}
			continue
		}
		if l := tr.Load; l == nil || l.From != "ssh://root@"+m.address || len(l.CPUs) == 0 || l.Shared || l.UserS+l.SystemS <= 0 || l.AheadBoundS <= 0 || l.AheadBoundS > 1 || l.AheadS > 1 || l.AheadS < -1 {
			t.Errorf("%s: load %+v", tr.Treatment, l)
		}
		if tr.Figures["requests"] != 20000 || tr.ElapsedS <= 0 || !strings.Contains(strings.Join(tr.Command, " "), m.outside) {
			t.Errorf("trial %+v", tr)
		}
	}
	if len(all) != 8 || failed != 1 || len(networks) != 4 {
		t.Errorf("%d trials of %d treatments, %d failed; want 8 of 4, and 1: %s", len(all), len(networks), failed, errs)
	}
	m.empty()
	if now := m.must("iptables-save"); now != rules && strings.Count(now, "\n") != strings.Count(rules, "\n") {
		t.Errorf("the host's rules were\n%s\nand are\n%s", rules, now)
	}

	m.as("stranger")
	_, errs, status = h.run("run", "./study.yaml", "--out", "S")
	if status != 1 || strings.Count(strings.TrimSpace(errs), "\n") > 1 || !strings.Contains(errs, "Permission denied") || !strings.Contains(errs, "without a question") {
		t.Errorf("with a key that is refused: %d, %s", status, errs)
	}
}
