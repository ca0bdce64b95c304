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

// Connection is a guest's part in the network of its spec. The zero value has none.
type Connection struct {
	changes *journal.Changes
	bridge  *network.Bridge
	macvlan bool
	lease   netip.Prefix // zero: the guest has the host's address
	address Address
}

// Connect begins a guest's part in a network. own says that the guest has its own address on the bridge, which Connect leases.
// Otherwise it has the host's address there, for itself or by way of a port that must be free on the host. A load on another
// machine always uses the host's address: where the guest has another, the host's port is forwarded to it. The links and rules
// belong to changes.
func Connect(ctx context.Context, n *Network, own bool, changes *journal.Changes) (*Connection, error) {
	c := &Connection{changes: changes}
	switch mode := n.mode(); {
	case mode == "" || mode == notebook.NetNone:
		return c, nil
	case !slices.Contains(notebook.Networks, mode):
		return c, fmt.Errorf("network %q: must be one of %s", n.Mode, strings.Join(notebook.Networks, ", "))
	}
	if n.Bridge == nil {
		return c, fmt.Errorf("network %s: the spec names no bridge for the load", n.Mode)
	}
	away := n.Here.IsValid() && n.Port != 0
	if away && n.Mode == notebook.NetMacvlan {
		return c, &UnsupportedError{Engine: "the network macvlan", What: "a load on another machine an address", Why: "the host cannot reach the guest, so it cannot forward a port to it"}
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

// Host is the host's address for requests to a service that has no address of its own.
func (n *Network) Host() netip.Addr {
	if n.Here.IsValid() {
		return n.Here
	}
	return n.Bridge.Host()
}

// published is the host's port of the service, where the guest has no address of its own.
func (n *Network) published() int { return cmp.Or(n.Published, n.Port) }

// mode is the network's mode; "" where none was requested.
func (n *Network) mode() string {
	if n == nil {
		return ""
	}
	return n.Mode
}

// NetworkMode is the requested mode of the network, "" where there is none.
func (s Spec) NetworkMode() string { return s.Network.mode() }

// Lease is the guest's own address; zero where it has none.
func (c *Connection) Lease() netip.Prefix { return c.lease }

// Address is where the guest's service listens and how the load reaches it.
func (c *Connection) Address() Address { return c.address }

// Plug connects the network namespace of a process, where the guest has its own address, by a cable or in the requested way.
func (c *Connection) Plug(pid int) error {
	if !c.lease.IsValid() {
		return nil
	}
	if c.macvlan {
		return c.bridge.Macvlan(pid, c.lease)
	}
	return c.bridge.Plug(c.changes, pid, c.lease)
}

// Unplug removes the guest's cable after the namespace of its other end has ended, without waiting for the kernel to do so. The
// guest can then be plugged again.
func (c *Connection) Unplug() error {
	if !c.lease.IsValid() || c.macvlan {
		return nil
	}
	return c.bridge.Unplug(c.lease)
}

// Tap makes the tap of a VM with its own address; nil where it has none. The caller closes the file.
func (c *Connection) Tap() (*os.File, error) {
	if !c.lease.IsValid() {
		return nil, nil
	}
	return c.bridge.Tap(c.changes, c.lease)
}

// Close ends the connection after its links are gone, and returns its address. It may be called more than once.
func (c *Connection) Close() {
	if c.lease.IsValid() {
		c.bridge.Return(c.lease)
		c.lease = netip.Prefix{}
	}
}
