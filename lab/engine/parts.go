//go:build linux

package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"tare/lab/ruler"
)

// Parts are what a driver holds of a guest on the host's own kernel, while it is made and until it is destroyed.
type Parts struct {
	Changes    *Changes
	Process    *Process // what was started on the host; it ends with the ruler
	Client     *ruler.Client
	Connection *Connection

	destroying sync.Mutex
}

// graceful is how long a ruler may take to end what it started once its stream is closed, and an engine to remove
// what it made around it.
const graceful = 3 * time.Second

// Ruler implements Guest.
func (p *Parts) Ruler() *ruler.Client { return p.Client }

// Address implements Guest.
func (p *Parts) Address() Address { return p.Connection.Address() }

// Destroy implements Guest. What was not there yet is left out.
func (p *Parts) Destroy(ctx context.Context) error {
	p.destroying.Lock()
	defer p.destroying.Unlock()
	if p.Client != nil {
		p.Client.Close() // its error is of a stream that nobody needs any more
	}
	var err error
	if p.Process != nil {
		// The ruler ends with its stream, and everything it started before it, and what the engine made with it; what
		// it did not get at, or left because it was killed itself, goes with the changes.
		err = p.Process.End(ctx, graceful)
	}
	return errors.Join(err, p.Connection.Close(ctx), p.Changes.Undo(ctx))
}
