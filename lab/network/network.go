//go:build linux

// Package network connects guests with their load: a bridge of Tare's own on the host with its own address range, virtual cables
// into guests' network namespaces, and taps for VMs. It records everything in the undo journal before it makes it.
//
// Nothing is forwarded between the bridge and the outside of the host, except the port of a guest with a load on another machine.
// There is no route and no masquerading. The links have no IPv6 address.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/lab/journal"
)

// Bridge is the network between the guests and the load, on the host. A run makes it when it first needs it. Its methods may be
// called from several goroutines.
type Bridge struct {
	journal *journal.Journal
	name    string
	subnet  netip.Prefix
	link    netlink.Link

	keeper *os.File // see open

	mu      sync.Mutex
	leased  map[netip.Addr]bool
	changes *journal.Changes // changes made by the bridge itself
}

// bits is the length of the bridge's prefix: 253 guests are more than a study of services has on one host.
const bits = 24

// bridges is the number of bridges that a host can have at the same time.
const bridges = 256

// subnet is the nth bridge's part of 198.18.0.0/15, the range for benchmarks (RFC 2544), which no host uses as its own.
func subnet(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(n), 0}), bits)
}

// Open makes the bridge, with the first address of a range that the host uses nowhere else. It then tries connections from one port
// of the bridge to another and to the host.
func Open(ctx context.Context, j *journal.Journal) (_ *Bridge, err error) {
	taken, err := routed()
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	for n := range bridges {
		b := &Bridge{
			journal: j, name: fmt.Sprintf("tare%d", n), subnet: subnet(n),
			leased: make(map[netip.Addr]bool), changes: journal.NewChanges(j, Undo()),
		}
		if slices.ContainsFunc(taken, b.subnet.Overlaps) {
			continue
		}
		if _, err := netlink.LinkByName(b.name); !notFound(err) {
			if err != nil {
				return nil, fmt.Errorf("network: looking for a link %s: %w", b.name, err)
			}
			continue // another tare's link, or somebody else's
		}
		err := b.open(ctx)
		if err == nil {
			return b, nil
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, b.Close(undo))
		if !errors.Is(err, unix.EEXIST) { // otherwise somebody has just made a link of that name
			return nil, fmt.Errorf("network: bridge %s: %w", b.name, err)
		}
	}
	return nil, fmt.Errorf("network: no room for a bridge: each of tare0 to tare%d exists, or the host has a route to its range in %s (see ip link, ip route)",
		bridges-1, netip.PrefixFrom(subnet(0).Addr(), 16))
}

// undoTime bounds the undoing after a failure.
const undoTime = 30 * time.Second

func (b *Bridge) open(ctx context.Context) error {
	l, err := add(b.changes, b.name, func(a netlink.LinkAttrs) (netlink.Link, error) {
		l := &netlink.Bridge{LinkAttrs: a}
		return l, netlink.LinkAdd(l)
	})
	if err != nil {
		return err
	}
	b.link = l
	if err := noIPv6(nil, l); err != nil {
		return err
	}
	// A bridge without a working port has no carrier. When it gets its first one, the kernel lets it send only up to a second
	// later. So it has a port from the start: a tap that nobody reads.
	if b.keeper, err = b.tap(b.changes, b.name+"keep"); err != nil {
		return err
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: IPNet(netip.PrefixFrom(b.Host(), bits))}); err != nil {
		return fmt.Errorf("giving it the address %s: %w", b.Host(), err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("setting it up: %w", err)
	}
	if err := b.allowTraffic(ctx); err != nil {
		return err
	}
	return b.try(ctx)
}

// Close removes the bridge and returns when it is gone. It may be called more than once.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.changes.Undo(ctx); err != nil {
		return fmt.Errorf("network: removing bridge %s: %w", b.name, err)
	}
	if b.keeper != nil {
		b.keeper.Close() // its link is gone
		b.keeper = nil
	}
	return nil
}

// Name is the bridge's name on the host.
func (b *Bridge) Name() string { return b.name }

// Host is the host's own address on the bridge.
func (b *Bridge) Host() netip.Addr { return b.subnet.Addr().Next() }

// Lease leases the lowest free address on the bridge; Return returns it.
func (b *Bridge) Lease() (netip.Prefix, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// The last one is the range's broadcast address.
	for a := b.Host().Next(); b.subnet.Contains(a.Next()); a = a.Next() {
		if !b.leased[a] {
			b.leased[a] = true
			return netip.PrefixFrom(a, bits), nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("network: no address is left on bridge %s: all of %s are leased", b.name, b.subnet)
}

// Return returns a leased address.
func (b *Bridge) Return(p netip.Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leased, p.Addr())
}

// MAC is the hardware address of the guest with this address. It is always the same, so that nobody on the bridge remembers another
// one.
func MAC(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return append(net.HardwareAddr{0x02, 0x54}, b[:]...) // 02: locally administered
}

// FreePort finds a port that is free at an address of the host.
func FreePort(a netip.Addr) (int, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, 0).String())
	if err != nil {
		return 0, fmt.Errorf("no free port at %s: %w", a, err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Free reports whether a service on the host can listen there; the error says in one line why not.
func Free(a netip.Addr, port int) error {
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, uint16(port)).String())
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("port %d is in use on the host: stop the program or the container that listens there (ss -ltnp 'sport = %[1]d'; docker ps --filter publish=%[1]d), or give the service another port", port)
	}
	if err != nil {
		return fmt.Errorf("trying port %d of the host: %w", port, err)
	}
	return l.Close()
}

// routed lists the networks that the host has a route to, except the default route.
func routed() ([]netip.Prefix, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("the host's routes: %w", err)
	}
	var all []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		a, ok := netip.AddrFromSlice(r.Dst.IP)
		ones, _ := r.Dst.Mask.Size()
		if ok && ones > 0 {
			all = append(all, netip.PrefixFrom(a.Unmap(), ones))
		}
	}
	return all, nil
}

// IPNet is the prefix in netlink's type.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
