//go:build linux

// Package remotetest has a machine for loads to run on, for tests: a real ssh server in a network namespace of this host.
package remotetest

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

	"tare/internal/require"
)

// Machine is a network namespace with an ssh server, as a second machine. Its file system is this machine's except for /var/lib.
type Machine struct {
	Address, Here string // its own, and this host's at the other end of the cable

	t         *testing.T
	dir, name string
	server    *exec.Cmd
}

const sshd = "/usr/sbin/sshd" // not in everybody's PATH

// Must runs a command of the host's.
func (m *Machine) Must(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// New makes one, which the user that runs the test may enter with the key "user" and not with "stranger". ssh is found by this
// test's PATH.
func New(t *testing.T) *Machine {
	t.Helper()
	require.Root(t)
	require.Program(t, "ssh", "ip", sshd)
	at := func(n int) string { // tests of several packages run at a time
		own := os.Getpid() % (1 << 14)
		return fmt.Sprintf("10.213.%d.%d", own>>6, own&63<<2+n)
	}
	m := &Machine{t: t, dir: t.TempDir(), name: fmt.Sprintf("taretest%d", os.Getpid()), Address: at(2), Here: at(1)}
	m.Must("ip", "netns", "add", m.name)
	t.Cleanup(func() {
		m.Kill()
		m.Must("ip", "netns", "del", m.name)
	})
	link := fmt.Sprintf("tt%d", os.Getpid())
	m.Must("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", m.name)
	m.Must("ip", "addr", "add", m.Here+"/30", "dev", link)
	m.Must("ip", "link", "set", link, "up")
	m.Must("ip", "-n", m.name, "addr", "add", m.Address+"/30", "dev", "eth0")
	m.Must("ip", "-n", m.name, "link", "set", "eth0", "up")
	m.Must("ip", "-n", m.name, "link", "set", "lo", "up")
	for _, key := range []string{"host", "user", "stranger"} {
		m.Must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(m.dir, key))
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // which sshd wants, and its service makes
		t.Fatal(err)
	}
	m.write("sshd_config", fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %[2]s/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n", m.Address, m.dir), 0o600)
	m.write("known", m.Address+" "+m.Must("cat", filepath.Join(m.dir, "host.pub")), 0o600)
	m.As("user")
	t.Setenv("PATH", m.dir+":"+os.Getenv("PATH"))
	m.Serve()
	return m
}

func (m *Machine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// As has this host's ssh use a key, as its user's configuration would.
func (m *Machine) As(key string) {
	m.t.Helper()
	m.write("config", fmt.Sprintf("Host *\n IdentityFile %s/%s\n IdentitiesOnly yes\n UserKnownHostsFile %[1]s/known\n", m.dir, key), 0o600)
	m.write("ssh", fmt.Sprintf("#!/bin/sh\nexec /usr/bin/ssh -F %s/config \"$@\"\n", m.dir), 0o755)
}

// Serve starts the ssh server, and returns when it listens.
func (m *Machine) Serve() {
	m.t.Helper()
	lib := m.Lib() // where others see what it keeps, and nobody else's is
	if err := os.MkdirAll(lib, 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.server = exec.Command("nsenter", "--net=/run/netns/"+m.name, "unshare", "--mount", "sh", "-c", // with the cgroups, which `ip netns exec` hides
		`mount --bind "$1" /var/lib && exec "$2" -D -e -f "$3"`, "serve", lib, sshd, filepath.Join(m.dir, "sshd_config"))
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

// Lib is where this host sees the machine's /var/lib.
func (m *Machine) Lib() string { return filepath.Join(m.dir, "lib") }

// Kill kills the ssh server, and all that serves a connection.
func (m *Machine) Kill() {
	for _, pid := range strings.Fields(m.Must("ip", "netns", "pids", m.name)) {
		if cmd, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.HasPrefix(string(cmd), "sshd:") || strings.HasPrefix(string(cmd), sshd) {
			var n int
			fmt.Sscan(pid, &n)
			syscall.Kill(n, syscall.SIGKILL) // it may have ended
		}
	}
	m.server.Wait()
}

// Empty waits until no process is left there but the server's.
func (m *Machine) Empty() {
	m.t.Helper()
	var left []string
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = m.Processes()
		if _, err := os.Stat(filepath.Join(m.dir, "lib/tare-load")); len(left) == 0 && os.IsNotExist(err) {
			return
		}
	}
	m.t.Errorf("on the load's machine there is left: %q, below /var/lib: %q", left, m.Must("sh", "-c", `ls -R "$1" | head -n 20`, "ls", filepath.Join(m.dir, "lib")))
}

// Processes are the command lines of what runs there, except the server's.
func (m *Machine) Processes() (all []string) {
	for _, pid := range strings.Fields(m.Must("ip", "netns", "pids", m.name)) {
		if cmd, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && !strings.Contains(string(cmd), "sshd") {
			all = append(all, strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return all
}
