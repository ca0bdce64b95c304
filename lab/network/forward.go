//go:build linux

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"tare/lab/journal"
)

// KindForwarding is the journal's kind for a link of the host whose forwarding Tare turned on; its target is the link's name.
const KindForwarding = "network-forwarding"

// forwardingOf is the file that says whether the kernel forwards packets that arrive by a link.
func forwardingOf(link string) string {
	return filepath.Join("/proc/sys/net/ipv4/conf", link, "forwarding")
}

// CanForward says why no port of the host can be forwarded; nil if it can.
func CanForward() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return errors.New("forwarding a port of the host to a guest needs iptables: apt-get install iptables")
	}
	return nil
}

// Forward forwards a TCP port of the host's address to the same port of a guest on the bridge, as container engines publish ports.
// The guest sees the bridge's own address as the sender, so it needs no route.
func (b *Bridge) Forward(ctx context.Context, c *journal.Changes, at netip.AddrPort, to netip.Addr) error {
	if err := CanForward(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	outside, err := LinkOf(at.Addr())
	if err == nil && outside == "" {
		err = fmt.Errorf("no link of the host has the address %s", at.Addr())
	}
	if err == nil {
		err = forwards(c, outside)
	}
	if err == nil { // the host's own link, which ends with its forwarding
		err = os.WriteFile(forwardingOf(b.name), []byte("1"), 0)
	}
	for _, rule := range []string{
		fmt.Sprintf("nat PREROUTING -d %s -p tcp --dport %d -j DNAT --to-destination %s", at.Addr(), at.Port(), to),
		fmt.Sprintf("nat POSTROUTING -o %s -d %s -p tcp --dport %d -j SNAT --to-source %s", b.name, to, at.Port(), b.Host()),
		fmt.Sprintf("filter FORWARD -i %s -o %s -d %s -p tcp --dport %d -j ACCEPT", outside, b.name, to, at.Port()),
		fmt.Sprintf("filter FORWARD -i %s -o %s -s %s -p tcp --sport %d -j ACCEPT", b.name, outside, to, at.Port()),
	} {
		if err == nil {
			err = insert(ctx, c, rule)
		}
	}
	if err != nil {
		return fmt.Errorf("network: forwarding %s to %s on bridge %s: %w", at, to, b.name, err)
	}
	return nil
}

// LinkOf is the host's link that has the address; "" if none has it.
func LinkOf(a netip.Addr) (string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		own, err := l.Addrs()
		if err != nil {
			return "", err
		}
		for _, o := range own {
			if p, err := netip.ParsePrefix(o.String()); err == nil && p.Addr() == a {
				return l.Name, nil
			}
		}
	}
	return "", nil
}

// forwards turns on forwarding of packets that arrive by a link.
func forwards(c *journal.Changes, link string) error {
	if now, err := os.ReadFile(forwardingOf(link)); err != nil || len(now) > 0 && now[0] == '1' {
		return err
	}
	if err := c.Announce(journal.Entry{Kind: KindForwarding, Target: link}); err != nil {
		return err
	}
	return os.WriteFile(forwardingOf(link), []byte("1"), 0)
}

// unforward turns it off again.
func unforward(link string) error {
	err := os.WriteFile(forwardingOf(filepath.Base(link)), []byte("0"), 0)
	if errors.Is(err, os.ErrNotExist) { // the link is gone too
		return nil
	}
	return err
}
