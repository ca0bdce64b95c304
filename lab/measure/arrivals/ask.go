//go:build linux

package arrivals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"tare/lab/crowd"
	"tare/lab/network"
	"tare/lab/workload"
)

// askPause is the time between two requests, which must not slow down a service that starts. It is also the resolution of the
// moment of the first answer.
const askPause = 2 * time.Millisecond

// host is this host.
type host struct{}

// ask sends a request to a service in a guest, at an address in the guest's network namespace. It repeats the request until the
// beginning of the right answer arrives or ctx ends.
func (host) ask(ctx context.Context, g crowd.Guest, at netip.AddrPort, q workload.Question) error {
	pids, err := g.Processes()
	if err == nil && len(pids) == 0 {
		err = errors.New("it has no processes")
	}
	if err != nil {
		return err
	}
	return network.Within(pids[0], func() error {
		for {
			err := once(ctx, at, q)
			if err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("its service did not answer: %w", err)
			case <-time.After(askPause):
			}
		}
	})
}

// once sends one request.
func once(ctx context.Context, at netip.AddrPort, q workload.Question) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(q.Send); err != nil {
		return err
	}
	answer := make([]byte, len(q.Answer))
	if n, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("answered %q: must begin with %q: %w", answer[:n], q.Answer, err)
	}
	if !bytes.Equal(answer, q.Answer) {
		return fmt.Errorf("answered %q: must begin with %q", answer, q.Answer)
	}
	return nil
}
