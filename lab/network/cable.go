//go:build linux

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"tare/lab/journal"
)

// guestLink is the name of a cable's end in a guest.
const guestLink = "eth0"

// Plug puts one end of a virtual cable into the network namespace of the process, as eth0 with the address, and the other on the
// bridge. It also sets the loopback up. The cable goes with the namespace, or when the changes are undone, also after an error.
func (b *Bridge) Plug(c *journal.Changes, pid int, p netip.Prefix) error {
	ns, err := namespaceOf(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	return b.plug(c, ns, p)
}

func (b *Bridge) plug(c *journal.Changes, ns netns.NsHandle, p netip.Prefix) error {
	l, err := add(c, b.port(p), func(a netlink.LinkAttrs) (netlink.Link, error) { return cable(a, ns, p) })
	if err == nil {
		err = lay(l, b.link, ns, p)
	}
	if err != nil {
		return fmt.Errorf("network: a cable to bridge %s: %w", b.name, err)
	}
	return nil
}

// Unplug removes the cable of the guest with the address, if it exists. When it returns the cable is gone.
func (b *Bridge) Unplug(p netip.Prefix) error {
	l, err := netlink.LinkByName(b.port(p))
	if notFound(err) {
		return nil
	}
	if err == nil {
		err = removeLink(b.port(p), l.Attrs().HardwareAddr.String())
	}
	if err != nil {
		return fmt.Errorf("network: the cable of %s: %w", p.Addr(), err)
	}
	return nil
}

// Macvlan gives the network namespace of the process a macvlan link of the bridge itself, as eth0 with the address: others on the
// bridge reach it without a cable. The host cannot reach it, because the bridge is the host's link. The link goes with the
// namespace or the bridge. It is never in the host's namespace, so the journal has no entry for it.
func (b *Bridge) Macvlan(pid int, p netip.Prefix) error {
	ns, err := namespaceOf(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	a := netlink.NewLinkAttrs()
	a.Name, a.ParentIndex, a.HardwareAddr, a.Namespace = guestLink, b.link.Attrs().Index, MAC(p.Addr()), netlink.NsFd(ns)
	err = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE})
	if err == nil {
		err = wake(ns, p)
	}
	if err == nil {
		err = works(ns, guestLink)
	}
	if err != nil {
		return fmt.Errorf("network: a macvlan link of bridge %s: %w", b.name, err)
	}
	return nil
}

// cable makes a cable whose other end is in the namespace.
func cable(a netlink.LinkAttrs, ns netns.NsHandle, p netip.Prefix) (netlink.Link, error) {
	l := &netlink.Veth{LinkAttrs: a, PeerName: guestLink, PeerHardwareAddr: MAC(p.Addr()), PeerNamespace: netlink.NsFd(ns)}
	return l, netlink.LinkAdd(l)
}

// lay connects both ends of a cable, and returns when frames sent into it arrive on the bridge.
func lay(l, bridge netlink.Link, ns netns.NsHandle, p netip.Prefix) error {
	if err := wake(ns, p); err != nil {
		return err
	}
	if err := connect(l, bridge); err != nil {
		return err
	}
	return works(ns, guestLink)
}

// wake sets up the loopback and the guest's link in a namespace, the link with its address.
func wake(ns netns.NsHandle, p netip.Prefix) error {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("entering the guest's network namespace: %w", err)
	}
	defer h.Close()
	if err := up(h, "lo"); err != nil {
		return err
	}
	end, err := h.LinkByName(guestLink)
	if err != nil {
		return fmt.Errorf("link %s in the guest: %w", guestLink, err)
	}
	if err := noIPv6(h, end); err != nil {
		return err
	}
	if err := h.AddrAdd(end, &netlink.Addr{IPNet: IPNet(p)}); err != nil {
		return fmt.Errorf("giving %s in the guest the address %s: %w", guestLink, p, err)
	}
	return up(h, guestLink)
}

// Through connects the network namespace of a process by way of this machine, which is a guest itself. It puts this machine's link
// of that name and a cable to the process on a new bridge, and gives the address only to the process. It is for the first process
// of a VM. Everything ends with the VM, so the journal has no entry.
func Through(link string, pid int, p netip.Prefix) error {
	ns, err := namespaceOf(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	a := netlink.NewLinkAttrs()
	a.Name = "bridge0"
	bridge := &netlink.Bridge{LinkAttrs: a}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("network: a bridge in the guest: %w", err)
	}
	outside, err := netlink.LinkByName(link)
	if err == nil {
		err = connect(outside, bridge)
	}
	if err == nil {
		err = netlink.LinkSetUp(bridge)
	}
	if err != nil {
		return fmt.Errorf("network: link %s of the guest: %w", link, err)
	}
	a.Name = "container"
	l, err := cable(a, ns, p)
	if err == nil {
		err = lay(l, bridge, ns, p)
	}
	if err != nil {
		return fmt.Errorf("network: a cable in the guest: %w", err)
	}
	return nil
}

// worksTime bounds the wait for the kernel to let a link send, which it does within about a second.
const worksTime = 10 * time.Second

// works waits until a link in a namespace may send. What a guest sends before that is lost.
func works(ns netns.NsHandle, name string) error {
	news, done := make(chan netlink.LinkUpdate), make(chan struct{})
	if err := netlink.LinkSubscribeWithOptions(news, done, netlink.LinkSubscribeOptions{Namespace: &ns, ListExisting: true}); err != nil {
		return fmt.Errorf("waiting for %s in the guest to work: %w", name, err)
	}
	defer func() {
		close(done)
		for range news { // until the sender has noticed
		}
	}()
	late := time.NewTimer(worksTime)
	defer late.Stop()
	for {
		select {
		case n, ok := <-news:
			if !ok {
				return fmt.Errorf("waiting for %s in the guest to work: the kernel's news of links ended", name)
			}
			if a := n.Attrs(); a.Name == name && a.OperState == netlink.OperUp {
				return nil
			}
		case <-late.C:
			return fmt.Errorf("%s in the guest does not work %v after it was set up", name, worksTime)
		}
	}
}

// connect puts a link on a bridge and sets it up.
func connect(l, bridge netlink.Link) error {
	if err := noIPv6(nil, l); err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(l, bridge); err != nil {
		return fmt.Errorf("putting %s on the bridge: %w", l.Attrs().Name, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("setting %s up: %w", l.Attrs().Name, err)
	}
	return nil
}

// port is the name of the bridge's port for the guest with the address.
func (b *Bridge) port(p netip.Prefix) string {
	a := p.Addr().As4()
	return fmt.Sprintf("%sp%d", b.name, a[3])
}

// Within runs f on a thread of its own that is in the network namespace of the process.
func Within(pid int, f func() error) error {
	ns, err := namespaceOf(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	return within(ns, f)
}

// Loopback sets the loopback up in the network namespace of the process.
func Loopback(pid int) error {
	ns, err := namespaceOf(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network: entering the namespace of process %d: %w", pid, err)
	}
	defer h.Close()
	if err := up(h, "lo"); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

// namespaceOf opens the network namespace of a process. It must not be this process's, because the changes are not meant for the
// host.
func namespaceOf(pid int) (netns.NsHandle, error) {
	own, err := netns.Get()
	if err != nil {
		return 0, fmt.Errorf("network: this process's namespace: %w", err)
	}
	defer own.Close()
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return 0, fmt.Errorf("network: the namespace of process %d: %w", pid, err)
	}
	if ns.Equal(own) {
		ns.Close()
		return 0, fmt.Errorf("network: process %d has no network namespace of its own", pid)
	}
	return ns, nil
}

func up(h *netlink.Handle, name string) error {
	l, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("setting %s up in the guest: %w", name, err)
	}
	return nil
}

// Tap makes a tap on the bridge for a VM that will have the address. The tap lives as long as a process has the file open, or until
// the changes are undone.
func (b *Bridge) Tap(c *journal.Changes, p netip.Prefix) (*os.File, error) {
	return b.tap(c, b.port(p))
}

func (b *Bridge) tap(c *journal.Changes, name string) (f *os.File, err error) {
	l, err := add(c, name, func(a netlink.LinkAttrs) (netlink.Link, error) {
		if f, err = openTap(a.Name); err != nil {
			return nil, err
		}
		l, err := netlink.LinkByName(a.Name)
		if err != nil {
			return nil, err
		}
		// Until it has its mark, the tap lives only as long as this process.
		return l, netlink.LinkSetHardwareAddr(l, a.HardwareAddr)
	})
	if err == nil {
		err = connect(l, b.link)
	}
	if err != nil {
		err = fmt.Errorf("network: a tap on bridge %s: %w", b.name, err)
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return f, nil
}

// openTap makes a tap for frames as virtio's network devices send them: with virtio's header, and without the tap's own.
func openTap(name string) (*os.File, error) {
	const device = "/dev/net/tun"
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; load the kernel's module (modprobe tun)", device, err)
	}
	f := os.NewFile(uintptr(fd), device)
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
