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
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netns"

	"tare/lab/journal"
	"tare/lab/proc"
)

// On a host with Docker, iptables sees every frame that a bridge passes on (bridge-nf-call-iptables, one switch for all bridges),
// and Docker drops frames that it does not know. Turning the switch off would change Docker's own bridges. One rule for frames that
// come from our bridge and stay on it changes nothing for others.

// kindRule is the journal's kind for a rule. Its target is the table, the chain and the rest, as iptables takes them. In journals
// of older versions the target is a bridge's name, which stands for the bridge's rule.
const kindRule = "network-rule"

// staying is the rule for frames that come from the bridge and stay on it.
func staying(bridge string) string {
	return fmt.Sprintf("filter FORWARD -i %[1]s -o %[1]s -j ACCEPT", bridge)
}

// bridgeCalls says whether bridged frames go through iptables. The file is missing where the kernel cannot do that.
const bridgeCalls = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// ruleTime bounds one call of iptables, which waits for other users of the tables.
const ruleTime = 20 * time.Second

// allowTraffic adds the rule if iptables sees the frames on bridges.
func (b *Bridge) allowTraffic(ctx context.Context) error {
	calls, err := os.ReadFile(bridgeCalls)
	if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(calls)) == "0" {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil // trying the bridge will show whether anything blocks it
	}
	return insert(ctx, b.changes, staying(b.name))
}

// insert adds a rule before the others of its chain.
func insert(ctx context.Context, c *journal.Changes, rule string) error {
	if err := c.Announce(journal.Entry{Kind: kindRule, Target: rule}); err != nil {
		return err
	}
	return iptables(ctx, "-I", rule, c.Lend)
}

func removeRule(ctx context.Context, rule string) error {
	if !strings.Contains(rule, " ") {
		rule = staying(rule)
	}
	err := iptables(ctx, "-D", rule, nil)
	if !missing(err) {
		return err
	}
	// iptables says in the same way that a rule is missing and that it cannot read the table or remove the rule.
	check := iptables(ctx, "-C", rule, nil)
	if !missing(check) {
		return errors.Join(err, check)
	}
	table, chain, _ := cutRule(rule)
	return iptables(ctx, "-S", table+" "+chain, nil)
}

// missing reports whether iptables answered as it does where there is no such rule.
func missing(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	return is && exit.ExitCode() == 1
}

// cutRule cuts a rule into its table, its chain and what iptables matches and does.
func cutRule(rule string) (table, chain string, rest []string) {
	words := strings.Fields(rule)
	return words[0], words[1], words[2:]
}

// iptables calls iptables for a rule. lend, which may be nil, gets the command before it starts.
func iptables(ctx context.Context, what, rule string, lend func(*exec.Cmd)) error {
	ctx, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	table, chain, rest := cutRule(rule)
	cmd := exec.CommandContext(ctx, "iptables", slices.Concat([]string{"--wait", "10", "--table", table, what, chain}, rest)...)
	if lend != nil {
		lend(cmd)
	}
	out, err := proc.Run(cmd)
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return nil
}

// tryTime bounds the wait for a connection over the new bridge. The kernel retransmits after 1 s.
const tryTime = 3 * time.Second

// try connects over the bridge, from one port to another and to the host.
func (b *Bridge) try(ctx context.Context) (err error) {
	c := journal.NewChanges(b.journal, Undo())
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, c.Undo(bounded))
	}()
	var ends [2]struct {
		ns      netns.NsHandle
		address netip.Addr
	}
	for i := range ends {
		ns, err := newNamespace()
		if err != nil {
			return err
		}
		defer ns.Close()
		p, err := b.Lease()
		if err != nil {
			return err
		}
		defer b.Return(p)
		if err := b.plug(c, ns, p); err != nil {
			return err
		}
		ends[i].ns, ends[i].address = ns, p.Addr()
	}
	here, err := netns.Get()
	if err != nil {
		return err
	}
	defer here.Close()
	for _, way := range []struct {
		to      netns.NsHandle
		address netip.Addr
		what    string
		rule    string
	}{
		{ends[1].ns, ends[1].address, "from one port of it to another", "FORWARD -i tare+ -o tare+"},
		{here, b.Host(), "from it to the host", "INPUT -i tare+"},
	} {
		if err := reach(ctx, ends[0].ns, way.to, way.address); err != nil {
			return fmt.Errorf("no connection %s: %w; if the host's firewall drops it, allow it: iptables -I %s -j ACCEPT", way.what, err, way.rule)
		}
	}
	return nil
}

// reach makes a connection between two namespaces.
func reach(ctx context.Context, from, to netns.NsHandle, address netip.Addr) error {
	var l net.Listener
	err := within(to, func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(address, 0).String())
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return within(from, func() error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// newNamespace makes a network namespace. It ends with its handle.
func newNamespace() (ns netns.NsHandle, err error) {
	err = proc.Apart(func() (err error) {
		ns, err = netns.New() // this thread is in the new namespace
		return err
	})
	return ns, err
}

// within runs f on a thread that is in the namespace. What f makes there, such as a socket, stays in the namespace.
func within(ns netns.NsHandle, f func() error) error {
	return proc.Apart(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return f()
	})
}
