// Package network connects guests with the load that is applied to them: a bridge of Tare's own on the host, with an
// address range of its own, the ends of virtual cables in guests' network namespaces, and taps for VMs. Everything
// that it makes stands in the undo journal before it is made.
package network

import (
	"context"
	"errors"
	"net/netip"
	"os"

	"tare/lab/host"
)

// Bridge is the network between the guests and the load, on the host. It is made when a run first needs it.
type Bridge struct{}

// Open makes the bridge, with the first address of a range that the host uses nowhere else.
func Open(ctx context.Context, j *host.Journal) (*Bridge, error) { return nil, errors.New("not built") }

// Close removes the bridge and returns when it is gone.
func (b *Bridge) Close(ctx context.Context) error { return nil }

// Name is the bridge's name on the host.
func (b *Bridge) Name() string { return "" }

// Host is the host's own address on the bridge.
func (b *Bridge) Host() netip.Addr { return netip.Addr{} }

// Lease gives an address that nobody on the bridge has; Return gives it back.
func (b *Bridge) Lease() (netip.Prefix, error) { return netip.Prefix{}, nil }

// Return gives a leased address back.
func (b *Bridge) Return(p netip.Prefix) {}

// Plug puts one end of a virtual cable into the network namespace of the process, as eth0 with the address, and the
// other on the bridge. The cable goes with the namespace; unplug removes it at once and waits until it is gone.
func (b *Bridge) Plug(pid int, p netip.Prefix) (unplug func(context.Context) error, err error) {
	return nil, nil
}

// Tap makes a tap on the bridge for a VM. It lives as long as the file is open in some process.
func (b *Bridge) Tap() (f *os.File, name string, err error) { return nil, "", nil }

// Undo says how what the journal has of this package is undone.
func Undo() map[string]host.Undo { return nil }
