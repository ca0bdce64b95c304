//go:build linux

package engine

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/notebook"
)

func TestNoConnection(t *testing.T) {
	for _, n := range []*Network{nil, {}, {Mode: notebook.NetNone}} {
		c, err := Connect(t.Context(), n, true, nil)
		if err != nil || c.Address() != (Address{}) || c.Lease().IsValid() {
			t.Errorf("%+v: %+v, %v; want nothing", n, c, err)
		}
		if f, err := c.Tap(); f != nil || err != nil {
			t.Errorf("%+v: a tap %v, %v", n, f, err)
		}
		c.Close()
	}
	for _, n := range []*Network{{Mode: "wireless"}, {Mode: notebook.NetBridge}, {Mode: notebook.NetHost}} {
		if _, err := Connect(t.Context(), n, true, nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want an error of one line", n, err)
		}
	}
}

func TestConnection(t *testing.T) {
	require.Root(t)
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := network.Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all [2]*Connection
	for i := range all {
		if all[i], err = Connect(t.Context(), &Network{Mode: notebook.NetBridge, Bridge: b, Port: 80}, true, nil); err != nil {
			t.Fatal(err)
		}
	}
	first := all[0].Lease()
	if a := all[0].Address(); a.Listen != first.Addr() || a.Connect != first.Addr() || all[1].Lease() == first {
		t.Errorf("address %+v with the lease %s, and another with %s", a, first, all[1].Lease())
	}
	for _, c := range all {
		for range 2 {
			c.Close()
		}
	}
	if p, err := b.Lease(); err != nil || p != first {
		t.Errorf("after the end of all the next lease is %s, %v; want %s", p, err, first)
	}

	l, err := net.Listen("tcp", netip.AddrPortFrom(b.Host(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Connect(t.Context(), &Network{Mode: notebook.NetHost, Bridge: b, Port: l.Addr().(*net.TCPAddr).Port}, false, nil)
	if err == nil || !strings.Contains(err.Error(), "is in use") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a port in use: %v, want an error of one line", err)
	}
	c, err := Connect(t.Context(), &Network{Mode: notebook.NetHost, Bridge: b}, false, nil)
	if err != nil || c.Address() != (Address{Listen: b.Host(), Connect: b.Host()}) {
		t.Errorf("the host's network: %+v, %v", c, err)
	}
}
