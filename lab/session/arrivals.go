//go:build linux

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"tare/lab/engine"
	"tare/lab/network"
	"tare/lab/study"
	"tare/lab/workload"
	"tare/notebook"
)

// ahead is a guest that is made and not started, as a study sees it.
type ahead struct {
	*engine.Ahead
	lab  *Lab
	t    notebook.Treatment
	cpus []int
}

// Meet implements study.Ahead.
func (a ahead) Meet(ctx context.Context) (study.Guest, error) {
	g, err := a.Ahead.Meet(ctx)
	if err != nil {
		return nil, err
	}
	return a.lab.guest(g, a.t.Instance.Cores, a.cpus), nil
}

// Create implements study.Lab. Its network is what the engine gives by itself.
func (l *Lab) Create(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (study.Ahead, error) {
	k, e, s, err := l.spec(t, id, w, 0)
	if err != nil {
		return nil, err
	}
	c, ok := e.(engine.Creator)
	if !ok {
		return nil, k.Unsupported("a guest that is made and not started", "it makes and starts a guest in one")
	}
	a, err := c.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return ahead{a, l, t, s.CPUs}, nil
}

// askPause is the time between two questions: a service that starts must not be slowed by being asked. It is how exactly the moment of its first answer
// is known.
const askPause = 2 * time.Millisecond

// Ask implements study.Lab.
func (l *Lab) Ask(ctx context.Context, each study.Guest, at netip.AddrPort, q workload.Question) error {
	g, ok := each.(guest)
	if !ok {
		return fmt.Errorf("a service is asked in a %T, not in a guest of this host", each)
	}
	pids, err := g.Processes()
	if err == nil && len(pids) == 0 {
		err = errors.New("it has no processes")
	}
	if err != nil {
		return err
	}
	return network.Within(pids[0], func() error {
		for {
			err := ask(ctx, at, q)
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

// ask asks once.
func ask(ctx context.Context, at netip.AddrPort, q workload.Question) error {
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
		return fmt.Errorf("%q came, and %q was expected: %w", answer[:n], q.Answer, err)
	}
	if !bytes.Equal(answer, q.Answer) {
		return fmt.Errorf("%q came, and %q was expected", answer, q.Answer)
	}
	return nil
}
