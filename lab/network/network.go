//go:build linux

// Package network connects guests with the load that is applied to them: a bridge of Tare's own on the host, with an
// address range of its own, the ends of virtual cables in guests' network namespaces, and taps for VMs. Everything
// that it makes stands in the undo journal before it is made.
//
// Nothing is forwarded between the bridge and the world outside of the host but the port of a guest that is asked from another
// machine: no route, no masquerading. The links have no IPv6 address.
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

// Bridge is the network between the guests and the load, on the host. It is made when a run first needs it. Its
// methods may be called from several goroutines.
type Bridge struct {
	journal *journal.Journal
	name    string
	subnet  netip.Prefix
	link    netlink.Link

	keeper *os.File // see open

	mu      sync.Mutex
	leased  map[netip.Addr]bool
	changes *journal.Changes // of the bridge itself
}

// bits is the length of the bridge's prefix: 253 guests are more than a host of today holds in a study of services.
const bits = 24

// bridges is how many there can be on a host at a time.
const bridges = 256

// subnet is that of the nth bridge: of 198.18.0.0/15, the range for benchmarks (RFC 2544), which no host uses as its own.
func subnet(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(n), 0}), bits)
}

// Open makes the bridge, with the first address of a range that the host uses nowhere else, and tries it: what is
// sent from one port of it to another, and to the host, arrives.
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
			continue // another tare's, or anybody's
		}
		err := b.open(ctx)
		if err == nil {
			return b, nil
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, b.Close(undo))
		if !errors.Is(err, unix.EEXIST) { // else somebody made a link of that name just now
			return nil, fmt.Errorf("network: bridge %s: %w", b.name, err)
		}
	}
	return nil, fmt.Errorf("network: no room for a bridge: each of tare0 to tare%d is there, or the host has a route to its range in %s (ip link, ip route)",
		bridges-1, netip.PrefixFrom(subnet(0).Addr(), 16))
}

// undoTime bounds what is taken back after a failure.
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
	// A bridge without a port that works has no carrier, and when it gets one the kernel lets it send only up to a
	// second later. So it has a port from the start: a tap that nobody reads.
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

// Lease gives an address that nobody on the bridge has, the lowest; Return gives it back.
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

// Return gives a leased address back.
func (b *Bridge) Return(p netip.Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leased, p.Addr())
}

// MAC is the hardware address of the guest that has the address: always the same, so that nobody on the bridge
// remembers another for it.
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

// Free says whether a service on the host can listen there; the error is one line that says why not.
func Free(a netip.Addr, port int) error {
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, uint16(port)).String())
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("port %d is in use on the host: end what listens there (ss -ltnp 'sport = %[1]d'), or give the service another port", port)
	}
	if err != nil {
		return fmt.Errorf("trying port %d of the host: %w", port, err)
	}
	return l.Close()
}

// routed lists what the host has a route to, but for the default.
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

// IPNet is the prefix as netlink takes it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
