//go:build linux

package remote

import (
	"context"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/notebook"
)

// guest is the place of a load. This host sees none of its processes.
type guest struct {
	line    *connection
	process *engine.Process // ssh's client
	client  *ruler.Client
}

// endTime is how long the ruler there may take to end what it started.
const endTime = 5 * time.Second

// Ruler implements engine.Guest, as do the other methods.
func (g *guest) Ruler() *ruler.Client              { return g.client }
func (g *guest) Processes() ([]int, error)         { return nil, nil }
func (g *guest) Threads() ([]engine.Thread, error) { return nil, nil }
func (g *guest) Limits() (notebook.Limits, error)  { return notebook.Limits{}, nil }
func (g *guest) Facts() engine.Facts               { return engine.Facts{} }
func (g *guest) Address() engine.Address           { return engine.Address{} }

// Diagnose says what happened to the connection, where that is known.
func (g *guest) Diagnose() string {
	said := "ssh: " + g.process.Ended()
	if !strings.Contains(said, sshFailed) {
		return said
	}
	lost := g.line.master.Ended() // Ended waits, because a session may end before its connection
	select {
	case <-g.line.master.Done():
		return "the connection was lost: " + lost
	default:
		return said
	}
}

func (g *guest) Destroy(ctx context.Context) error {
	if g.client != nil {
		g.client.Close() // nobody needs the stream any more
	}
	return g.process.End(ctx, endTime)
}
