//go:build linux

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/image"
	"tare/lab/network"
	"tare/lab/ruler"
	"tare/notebook"
)

// OnNetwork makes one guest with the network of the mode and checks only that, for a host whose firewall or engine is set up in
// another way than for the whole suite. It returns the guest's image.
func OnNetwork(t *testing.T, s Subject, e Expectations, mode string) *image.Image {
	t.Helper()
	r := newSuite(t, s, e)
	r.onNetwork(t, mode)
	return r.image
}

// openNetwork makes the bridge and the bare-metal guest on it that sends requests to the others' services.
func (r *suite) openNetwork(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var err error
	if r.bridge, err = network.Open(ctx, r.env.Journal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.bridge.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	s := r.spec(t, "", 1)
	s.Network = &engine.Network{Mode: notebook.NetBridge, Bridge: r.bridge}
	// Not among the guests under test: the suite checks that nothing of those remains.
	env := newLab(t, filepath.Join(r.dir(), "load"))
	if r.client, err = bare.Kind.New(env).Provision(ctx, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.destroy(t, r.client) })
}

// connected gives a spec the network of the mode and a free port; "" leaves it unchanged.
func connected(s engine.Spec, mode string, b *network.Bridge) (engine.Spec, error) {
	if mode == "" {
		return s, nil
	}
	port, err := network.FreePort(b.Host())
	s.Network = &engine.Network{Mode: mode, Bridge: b, Port: port}
	return s, err
}

func (r *suite) connected(t *testing.T, s engine.Spec, mode string) engine.Spec {
	t.Helper()
	s, err := connected(s, mode, r.bridge)
	if err != nil {
		t.Fatal(err)
	}
	if r.e.Publishes && mode == notebook.NetBridge {
		if s.Network.Published, err = network.FreePort(r.bridge.Host()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// network checks a guest's network, and reaches it as a load does.
func (r *suite) network(t *testing.T, g engine.Guest, s engine.Spec) {
	mode := s.NetworkMode()
	a := g.Address()
	up := r.links(t, g)
	if mode == "" {
		if !slices.Contains(up["lo"], "127.0.0.1/8") {
			t.Errorf("links %v; want at least the loopback", up)
		}
		return
	}
	t.Logf("%s: %+v, links %v", mode, a, up)
	switch {
	case mode == notebook.NetNone:
		if a != (engine.Address{}) || len(up) != 1 || !slices.Contains(up["lo"], "127.0.0.1/8") {
			t.Errorf("address %+v and links %v; want none, and only the loopback", a, up)
		}
		return
	case mode == notebook.NetHost && r.e.SharesKernel:
		if up[r.bridge.Name()] == nil || a.Listen != r.bridge.Host() || a.Connect != r.bridge.Host() {
			t.Errorf("address %+v and links %v; want the host's", a, up)
		}
	default:
		r.ownLink(t, a, up)
	}
	// A second time, because the cancelled service must leave the port and the ruler free.
	for range 2 {
		r.serve(t, g, s, a)
	}
}

// ownLink reports whether a guest has one link in addition to the loopback, with one IPv4 address. The address must be the one
// where it is reached, unless the engine forwards requests from elsewhere.
func (r *suite) ownLink(t *testing.T, a engine.Address, up map[string][]string) {
	t.Helper()
	var v4 []string
	for _, address := range up["eth0"] {
		p, err := netip.ParsePrefix(address)
		if err == nil && p.Addr().Is4() {
			v4 = append(v4, p.Addr().String())
		} else if err != nil || !p.Addr().IsLinkLocalUnicast() {
			t.Errorf("eth0 has the address %s", address)
		}
	}
	if len(up) != 2 || len(v4) != 1 || !a.Listen.IsUnspecified() && (v4[0] != a.Listen.String() || a.Connect != a.Listen) {
		t.Errorf("address %+v and links %v; want eth0 with it, and the loopback", a, up)
	}
}

// links returns the addresses of the links that are up in a guest.
func (r *suite) links(t *testing.T, g engine.Guest) map[string][]string {
	t.Helper()
	up := map[string][]string{}
	for line := range strings.Lines(r.sh(t, g, "/bin/probe links")) {
		f := strings.Fields(line)
		up[f[0]] = append([]string{}, f[1:]...)
	}
	return up
}

// serve runs a service as one order, sends it a request from the bridge, and cancels it, with the daemons that it left.
func (r *suite) serve(t *testing.T, g engine.Guest, s engine.Spec, a engine.Address) {
	t.Helper()
	port := uint16(s.Network.Port)
	listen, at := netip.AddrPortFrom(a.Listen, port), netip.AddrPortFrom(a.Connect, cmp.Or(uint16(a.Port), port)).String()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type end struct {
		r   ruler.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv: []string{"/bin/sh", "-c", fmt.Sprintf("/bin/probe daemons-3 %s; exec /bin/probe serve %s %[1]s", s.ID, listen)},
			Env:  []string{"PATH=/bin"}, Timeout: time.Hour, OutputLimit: 4096,
		})
		ended <- end{res, err}
	}()
	patience := r.e.patience(5 * time.Second)
	res := r.order(t, r.client, ruler.Order{Argv: []string{"/bin/probe", "ask", at, patience.String()}, Timeout: 2 * patience})
	if got := string(res.Stdout); got != s.ID+"\n" {
		t.Errorf("asked at %s from the bridge: %q, exit %d %s; want %q", at, got, res.Exit, res.Stderr, s.ID)
	}
	cancel()
	select {
	case e := <-ended:
		if !errors.Is(e.err, context.Canceled) {
			t.Errorf("a service that was cancelled: %v, exit %d, %s%s%s; want the context's error", e.err, e.r.Exit, e.r.Error, e.r.Stdout, e.r.Stderr)
		}
	case <-time.After(r.e.patience(10 * time.Second)):
		t.Fatal("a service that was cancelled does not end")
	}
	if got := r.sh(t, g, "grep -lE '[l]inger.'"+s.ID+"'|[s]erve."+listen.String()+"."+s.ID+"' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"); got != "0" {
		t.Errorf("%s processes of a cancelled service still exist", got)
	}
}

// portInUse requests a guest whose port on the host is taken.
func (r *suite) portInUse(t *testing.T, s engine.Spec, a engine.Address) {
	if s.Network == nil || a.Connect != r.bridge.Host() {
		return // it has its own address
	}
	// Listening works only if nothing of the earlier guest listens there any more.
	port := cmp.Or(s.Network.Published, s.Network.Port)
	l, err := net.Listen("tcp", netip.AddrPortFrom(r.bridge.Host(), uint16(port)).String())
	if err != nil {
		t.Fatalf("after the guest's end: %v", err)
	}
	defer l.Close()
	again := r.spec(t, s.Provisioning, s.Instance.Cores)
	again.Network = s.Network
	err = r.attempt(t, again, 20*time.Second)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", port)) {
		t.Errorf("a guest whose port is in use: %v; want an error of one line that says so", err)
	}
}

// nextLease is the address that the next guest on the bridge would get.
func nextLease(b *network.Bridge) (string, error) {
	p, err := b.Lease()
	if err != nil {
		return "", err
	}
	b.Return(p)
	return p.String(), nil
}
