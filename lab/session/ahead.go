//go:build linux

package session

import (
	"context"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/notebook"
)

// ahead is a guest that is made but not started, as a study sees it.
type ahead struct {
	*engine.Ahead
	lab  *Lab
	t    notebook.Treatment
	cpus []int
}

// Meet implements measure.Ahead.
func (a ahead) Meet(ctx context.Context) (crowd.Guest, error) {
	g, err := a.Ahead.Meet(ctx)
	if err != nil {
		return nil, err
	}
	return a.lab.guest(g, a.t.Instance.Cores, a.cpus), nil
}

// Create implements measure.Lab. The engine chooses the network.
func (l *Lab) Create(ctx context.Context, w crowd.Want) (measure.Ahead, error) {
	k, e, s, err := l.spec(w)
	if err != nil {
		return nil, err
	}
	if w.Work.Workload.SharesWith(w.Work.Params) {
		return nil, k.Unsupported("a folder shared by several instances", "Tare does not support it for containers that are created before they start")
	}
	c, ok := e.(engine.Creator)
	if !ok {
		return nil, k.Unsupported("a guest that is made and not started", "it makes and starts a guest in one step")
	}
	a, err := c.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return ahead{a, l, w.Treatment, s.CPUs}, nil
}
