//go:build linux

package engine

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"tare/lab/network"
	"tare/notebook"
)

// Connection is a guest's part in the network of its spec. One that is zero has none.
type Connection struct {
	bridge  *network.Bridge
	lease   netip.Prefix // zero: it has the host's address
	address Address
	unplug  func(context.Context) error
}

// Connect begins a guest's part in a network: own says that it has an address on the bridge for itself, which is
// leased; else it has the host's there, and the port must be free on the host.
func Connect(n *Network, own bool) (*Connection, error) {
	c := &Connection{}
	switch n.mode() {
	case "", notebook.NetNone:
		return c, nil
	case notebook.NetBridge, notebook.NetHost:
	default:
		return c, fmt.Errorf("network %q: want %s, %s or %s", n.Mode, notebook.NetBridge, notebook.NetHost, notebook.NetNone)
	}
	if n.Bridge == nil {
		return c, fmt.Errorf("network %s: the spec names no bridge that the load is on", n.Mode)
	}
	if !own {
		c.address = Address{Listen: n.Bridge.Host(), Connect: n.Bridge.Host()}
		if n.Port == 0 {
			return c, nil
		}
		return c, network.Free(n.Bridge.Host(), n.Port)
	}
	lease, err := n.Bridge.Lease()
	if err != nil {
		return c, err
	}
	c.bridge, c.lease = n.Bridge, lease
	c.address = Address{Listen: lease.Addr(), Connect: lease.Addr()}
	return c, nil
}

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

// Plug connects the network namespace of a process by a cable, where the guest has an address for itself.
func (c *Connection) Plug(pid int) (err error) {
	if c.lease.IsValid() {
		if c.unplug, err = c.bridge.Plug(pid, c.lease); err != nil {
			c.lease = netip.Prefix{} // not given back: something of the cable may be left, and the next would meet it
		}
	}
	return err
}

// Tap makes the tap of a VM with an address for itself; nil where it has none. The file is the caller's to close.
func (c *Connection) Tap() (f *os.File, err error) {
	if c.lease.IsValid() {
		if f, c.unplug, err = c.bridge.Tap(c.lease); err != nil {
			c.lease = netip.Prefix{} // as in Plug
		}
	}
	return f, err
}

// Close ends the connection: its links are gone then, and its address may be another's. It may be called more than
// once.
func (c *Connection) Close(ctx context.Context) error {
	if c == nil {
		return nil
	}
	if c.unplug != nil {
		if err := c.unplug(ctx); err != nil {
			return fmt.Errorf("disconnecting the guest from the network: %w", err)
		}
		c.unplug = nil
	}
	if c.lease.IsValid() {
		c.bridge.Return(c.lease)
		c.lease = netip.Prefix{}
	}
	return nil
}
