//go:build linux

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"tare/lab/journal"
	"tare/lab/network"
	"tare/notebook"
)

// Connection is a guest's part in the network of its spec. One that is zero has none.
type Connection struct {
	changes *journal.Changes
	bridge  *network.Bridge
	macvlan bool
	lease   netip.Prefix // zero: it has the host's address
	address Address
}

// Connect begins a guest's part in a network: own says that it has an address on the bridge for itself, which is
// leased; else it has the host's there, for itself or by way of a port, and the port must be free on the host. From another machine
// it is reached at the host's address in any case: where its own is another, the host's port is forwarded to it. Its links and
// rules are the changes'.
func Connect(ctx context.Context, n *Network, own bool, changes *journal.Changes) (*Connection, error) {
	c := &Connection{changes: changes}
	switch mode := n.mode(); {
	case mode == "" || mode == notebook.NetNone:
		return c, nil
	case !slices.Contains(notebook.Networks, mode):
		return c, fmt.Errorf("network %q: want one of %s", n.Mode, strings.Join(notebook.Networks, ", "))
	}
	if n.Bridge == nil {
		return c, fmt.Errorf("network %s: the spec names no bridge that the load is on", n.Mode)
	}
	away := n.Here.IsValid() && n.Port != 0
	if away && n.Mode == notebook.NetMacvlan {
		return c, &UnsupportedError{Engine: "the network macvlan", What: "a load on another machine an address", Why: "the host cannot reach the guest, and so cannot lead to it what arrives at a port of its own"}
	}
	if !own || away {
		at := n.Host()
		c.address = Address{Listen: at, Connect: at}
		if n.Port != 0 {
			if err := network.Free(at, n.published()); err != nil {
				return c, err
			}
		}
		if !own {
			return c, nil
		}
	}
	lease, err := n.Bridge.Lease()
	if err != nil {
		return c, err
	}
	c.bridge, c.lease, c.macvlan = n.Bridge, lease, n.Mode == notebook.NetMacvlan
	c.address.Listen = lease.Addr()
	if away {
		return c, c.bridge.Forward(ctx, changes, netip.AddrPortFrom(n.Here, uint16(n.Port)), lease.Addr())
	}
	c.address.Connect = lease.Addr()
	return c, nil
}

// Host is the host's address at which a service that has none of its own is asked.
func (n *Network) Host() netip.Addr {
	if n.Here.IsValid() {
		return n.Here
	}
	return n.Bridge.Host()
}

// published is the host's port at which the service is asked, where the guest has no address for itself.
func (n *Network) published() int { return cmp.Or(n.Published, n.Port) }

// mode is the network's mode; "" where none was asked for.
func (n *Network) mode() string {
	if n == nil {
		return ""
	}
	return n.Mode
}

// NetworkMode is the mode of the network that is asked for, "" where none is.
func (s Spec) NetworkMode() string { return s.Network.mode() }

// Lease is the address that the guest has for itself; zero where it has none.
func (c *Connection) Lease() netip.Prefix { return c.lease }

// Address is where the guest's service listens and is reached.
func (c *Connection) Address() Address { return c.address }

// Plug connects the network namespace of a process, by a cable or as was asked for, where the guest has an address for itself.
func (c *Connection) Plug(pid int) error {
	if !c.lease.IsValid() {
		return nil
	}
	if c.macvlan {
		return c.bridge.Macvlan(pid, c.lease)
	}
	return c.bridge.Plug(c.changes, pid, c.lease)
}

// Unplug takes the guest's cable away, whose other end's namespace has ended: the kernel does it too, in its own time. It can be plugged again then.
func (c *Connection) Unplug() error {
	if !c.lease.IsValid() || c.macvlan {
		return nil
	}
	return c.bridge.Unplug(c.lease)
}

// Tap makes the tap of a VM with an address for itself; nil where it has none. The file is the caller's to close.
func (c *Connection) Tap() (*os.File, error) {
	if !c.lease.IsValid() {
		return nil, nil
	}
	return c.bridge.Tap(c.changes, c.lease)
}

// Close ends the connection, whose links are gone: its address may be another's. It may be called more than once.
func (c *Connection) Close() {
	if c.lease.IsValid() {
		c.bridge.Return(c.lease)
		c.lease = netip.Prefix{}
	}
}
