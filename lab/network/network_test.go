//go:build linux

package network

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/lab/network/networktest"
)

// envHold names the state folder of the process that the tests start to be killed.
const envHold = "TARE_NETWORK_HOLD"

func TestMain(m *testing.M) {
	if state := os.Getenv(envHold); state != "" {
		fmt.Println(hold(state))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// open gives a bridge and its journal, both to be closed without anything left.
func open(t *testing.T) (*Bridge, *journal.Journal) {
	t.Helper()
	require.Root(t)
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	start := time.Now()
	b, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s opened in %v", b.Name(), time.Since(start))
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("closed a second time: %v", err)
		}
		if left := networktest.Left(t, b.Name()); len(left) > 0 {
			t.Errorf("after Close there remain: %v", left)
		}
	})
	return b, j
}

// guest is a process in a network namespace of its own.
func guest(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

func lease(t *testing.T, b *Bridge) netip.Prefix {
	t.Helper()
	p, err := b.Lease()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBridge(t *testing.T) {
	b, j := open(t)
	other, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if other.Name() == b.Name() || other.Host() == b.Host() {
		t.Errorf("two bridges: %s %s and %s %s", b.Name(), b.Host(), other.Name(), other.Host())
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
	l, err := netlink.LinkByName(b.Name())
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil || len(addresses) != 1 || addresses[0].IP.String() != b.Host().String() {
		t.Errorf("addresses %v, %v; want only %s", addresses, err, b.Host())
	}
}

func TestLeases(t *testing.T) {
	b := &Bridge{subnet: subnet(3), leased: make(map[netip.Addr]bool)}
	var all []netip.Prefix
	for {
		p, err := b.Lease()
		if err != nil {
			break
		}
		if slices.Contains(all, p) || !b.subnet.Contains(p.Addr()) || p.Bits() != 24 {
			t.Fatalf("lease %s after %v", p, all)
		}
		all = append(all, p)
	}
	if len(all) != 253 || all[0].String() != "198.18.3.2/24" || all[252].String() != "198.18.3.254/24" {
		t.Errorf("%d leases from %s on, want 253", len(all), all[0])
	}
	b.Return(all[7])
	if p, err := b.Lease(); err != nil || p != all[7] {
		t.Errorf("after %s was returned: %s, %v", all[7], p, err)
	}
}

func TestPlug(t *testing.T) {
	b, j := open(t)
	pid, p := guest(t), lease(t, b)
	c := journal.NewChanges(j, Undo())
	if err := b.Plug(c, pid, p); err != nil {
		t.Fatal(err)
	}
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := within(ns, func() error {
		links, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, l := range links {
			addresses, err := l.Addrs()
			if err != nil {
				return err
			}
			switch {
			case l.Name == "lo":
			case l.Name == "eth0" && len(addresses) == 1 && addresses[0].String() == p.String() && l.HardwareAddr.String() == MAC(p.Addr()).String():
			case l.Flags&net.FlagUp != 0:
				t.Errorf("in the guest: %+v with %v", l, addresses)
			}
			if l.Name == "lo" && l.Flags&net.FlagUp == 0 {
				t.Error("the guest's loopback is not up")
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := reach(t.Context(), here, ns, p.Addr()); err != nil {
		t.Errorf("from the host to the guest: %v", err)
	}
	if err := b.Plug(c, os.Getpid(), p); err == nil {
		t.Error("a cable was put into the host's own namespace")
	}
	for range 2 {
		if err := c.Undo(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := netlink.LinkByName(b.port(p)); !notFound(err) {
		t.Errorf("after Undo the port is there: %v", err)
	}
	b.Return(p)
}

func TestTap(t *testing.T) {
	b, j := open(t)
	p := lease(t, b)
	c := journal.NewChanges(j, Undo())
	f, err := b.Tap(c, p)
	if err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName(b.port(p))
	if err != nil || l.Attrs().MasterIndex != b.link.Attrs().Index || l.Attrs().Flags&net.FlagUp == 0 {
		t.Errorf("tap %+v, %v; want it up and on the bridge", l, err)
	}
	if err := c.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := netlink.LinkByName(b.port(p)); !notFound(err) {
		t.Errorf("after its removal the tap is there: %v", err)
	}
	f.Close()
}

// What another has made is not removed, whatever the journal says of its name.
func TestForeignLink(t *testing.T) {
	require.Root(t)
	name := fmt.Sprintf("tf%d", os.Getpid())
	a := netlink.NewLinkAttrs()
	a.Name = name
	l := &netlink.Bridge{LinkAttrs: a}
	if err := netlink.LinkAdd(l); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := netlink.LinkDel(l); err != nil {
			t.Errorf("another's link: %v", err)
		}
	}()
	if err := Undo()[kindLink](t.Context(), journal.Entry{Kind: kindLink, Target: name, Detail: map[string]string{detailMAC: mark().String()}}); err != nil {
		t.Error(err)
	}
}

func TestFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	if err := Free(at.Addr(), int(at.Port())); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", at.Port())) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a port in use: %v", err)
	}
	l.Close()
	if err := Free(at.Addr(), int(at.Port())); err != nil {
		t.Errorf("a free port: %v", err)
	}
}

// hold makes a bridge with a cable and a tap, says its name and waits to be killed.
func hold(state string) error {
	j, err := journal.Open(state)
	if err != nil {
		return err
	}
	b, err := Open(context.Background(), j)
	if err != nil {
		return err
	}
	ns, err := newNamespace()
	if err != nil {
		return err
	}
	c := journal.NewChanges(j, Undo())
	for range 2 {
		p, err := b.Lease()
		if err != nil {
			return err
		}
		if p.Addr().As4()[3] == 2 {
			err = b.plug(c, ns, p)
		} else {
			_, err = b.Tap(c, p)
		}
		if err != nil {
			return err
		}
	}
	fmt.Println(b.Name())
	select {}
}

func TestRecover(t *testing.T) {
	require.Root(t)
	state := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHold+"="+state)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	bridge := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(bridge, "tare") {
		t.Errorf("the process that was to make a bridge said %q (%v)", line, err)
	} else if left := networktest.Left(t, bridge); len(left) < 2 {
		t.Errorf("of a bridge in use there are %v", left)
	}
	cmd.Process.Kill()
	cmd.Wait()
	undone, err := journal.Recover(t.Context(), state, Undo())
	if err != nil || len(undone) < 3 {
		t.Errorf("recovered %v, %v; want a bridge, a cable and a tap at least", undone, err)
	}
	if left := networktest.Left(t, bridge); len(left) > 0 {
		t.Errorf("after a kill and Recover there remain: %v", left)
	}
}

// A process is killed while iptables adds a rule for it. The rule must not appear after it was undone.
func TestKilledWhileARuleIsAdded(t *testing.T) {
	require.Root(t)
	real, err := exec.LookPath("iptables")
	require.That(t, err == nil, "iptables")
	if calls, err := os.ReadFile(bridgeCalls); err != nil || strings.TrimSpace(string(calls)) != "1" {
		t.Skip("the kernel does not show bridged frames to iptables, so there is no rule")
	}
	dir := t.TempDir()
	state, started := filepath.Join(dir, "state"), filepath.Join(dir, "started")
	slow := "#!/bin/sh\ncase \" $* \" in *' -I '*) echo $$ >" + started + ".new; mv " + started + ".new " + started + "; sleep 0.5;; esac\n" + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "iptables"), []byte(slow), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHold+"="+state, "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, started, true)
	cmd.Process.Kill()
	cmd.Wait() // its error is our kill
	undone, err := journal.Recover(t.Context(), state, Undo())
	if err != nil || len(undone) < 3 {
		t.Errorf("recovered %v, %v; want a bridge, its tap and its rule", undone, err)
	}
	pid, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join("/proc", strings.TrimSpace(string(pid))), false)
	if left := networktest.Deserted(t); len(left) > 0 {
		t.Errorf("after a kill and Recover there remain: %v", left)
	}
}

// awaitFile waits until there is the file, or until there is none.
func awaitFile(t *testing.T, path string, there bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); (err == nil) == there {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: after 20 s it is still so that it exists: %v", path, !there)
		}
	}
}

// iptables exits with 1 for a rule that is missing and for a table that it cannot read. Only the first means that there is nothing to
// undo.
func TestATableThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		script string
		undone bool
	}{
		{"exit 1", false},
		{"case \" $* \" in *' -S '*) exit 0;; esac; exit 1", true},
		{"case \" $* \" in *' -D '*) exit 1;; esac; exit 0", false}, // it is there, and cannot be removed
		{"case \" $* \" in *' -S '*) exit 0;; *' -C '*) exit 4;; esac; exit 1", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "iptables"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		if err := Undo()[kindRule](t.Context(), journal.Entry{Kind: kindRule, Target: staying("tare0")}); (err == nil) != c.undone {
			t.Errorf("iptables is %q: undone with %v, want success: %v", c.script, err, c.undone)
		}
	}
}
