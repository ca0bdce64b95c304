//go:build linux

package network

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/lab/journal"
)

// kindLink is the journal's kind for a network link; its target is the name. Its hardware address, chosen at random before,
// identifies the link as Tare's: the kernel gives it to the link when it makes the link.
const kindLink = "network-link"

const detailMAC = "mac"

// Undo returns the functions that undo the journal entries of this package.
func Undo() map[string]journal.Undo {
	return map[string]journal.Undo{
		kindLink:       func(_ context.Context, e journal.Entry) error { return removeLink(e.Target, e.Detail[detailMAC]) },
		kindRule:       func(ctx context.Context, e journal.Entry) error { return removeRule(ctx, e.Target) },
		KindForwarding: func(_ context.Context, e journal.Entry) error { return unforward(e.Target) },
	}
}

// add makes a link with create, after writing the journal.
func add(c *journal.Changes, name string, create func(netlink.LinkAttrs) (netlink.Link, error)) (netlink.Link, error) {
	a := netlink.NewLinkAttrs()
	a.Name, a.HardwareAddr = name, mark()
	if err := c.Announce(journal.Entry{Kind: kindLink, Target: name, Detail: map[string]string{detailMAC: a.HardwareAddr.String()}}); err != nil {
		return nil, err
	}
	l, err := create(a)
	if err != nil {
		return nil, fmt.Errorf("making the link %s: %w", name, err)
	}
	return l, nil
}

// mark is a random hardware address: locally administered, unicast.
func mark() net.HardwareAddr {
	m := make(net.HardwareAddr, 6)
	rand.Read(m) // it never fails
	m[0] = m[0]&^1 | 2
	return m
}

// removeLink removes the link with this name and mark. Another link of that name stays. When it returns the link is gone.
func removeLink(name, mac string) error {
	l, err := netlink.LinkByName(name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the link %s: %w", name, err)
	}
	if l.Attrs().HardwareAddr.String() != mac {
		return nil
	}
	// The kernel answers when the link is gone. It may have gone just now with the namespace of its other end.
	if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) && !notFound(err) {
		return fmt.Errorf("removing the link %s: %w", name, err)
	}
	return nil
}

func notFound(err error) bool {
	_, is := errors.AsType[netlink.LinkNotFoundError](err)
	return is
}

// noIPv6 keeps a link from giving itself an IPv6 address. h is the namespace of the link; nil: this one.
func noIPv6(h *netlink.Handle, l netlink.Link) error {
	set := netlink.LinkSetIP6AddrGenMode
	if h != nil {
		set = h.LinkSetIP6AddrGenMode
	}
	// A kernel without IPv6 needs no setting.
	if err := set(l, nl6None); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("link %s: keeping it without an IPv6 address: %w", l.Attrs().Name, err)
	}
	return nil
}

// nl6None is the kernel's IN6_ADDR_GEN_MODE_NONE.
const nl6None = 1
