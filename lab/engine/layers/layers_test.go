//go:build linux

package layers_test

import (
	"context"
	"os"
	"testing"

	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/engine/layers"
	"tare/notebook"
)

// rung is the driver for guests of one topmost layer.
type rung struct {
	engine.Driver
	top string
}

func (r rung) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	s.Isolation = r.top
	return r.Driver.Provision(ctx, s)
}

func subject(top string) conformance.Subject {
	s := conformance.Of(layers.Kind)
	s.Name = top
	if layers.Has(top, "network") {
		s.Networks = []string{notebook.NetBridge, notebook.NetNone}
	}
	s.New = func(env engine.Env) (engine.Driver, error) {
		env.Entry = os.Args[0]
		return rung{layers.Kind.New(env), top}, nil
	}
	return s
}

// subjects are the lowest rung, the topmost of those that share the host's network, and the topmost of all.
var subjects = []string{"cgroup", "mount", "bridge"}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == layers.Command { // this program enters the layers, as tare does
		os.Exit(layers.Main(os.Args[2:]))
	}
	var all []conformance.Subject
	for _, top := range subjects {
		all = append(all, subject(top))
	}
	conformance.Main(m, all...)
}

func TestConformance(t *testing.T) {
	for _, top := range subjects {
		t.Run(top, func(t *testing.T) {
			conformance.Run(t, subject(top), conformance.Expectations{
				Provisionings: []string{""},
				MemoryLimit:   layers.Has(top, "memory"),
				QuotaToo:      layers.Has(top, "quota"),
				WritableRoot:  layers.Has(top, "overlay"),
				SharesKernel:  true,
				HostRoot:      top == "cgroup", // without a /proc of its own, by which it finds the host's files
			})
		})
	}
}

func TestNoHello(t *testing.T) { conformance.NoHello(t, subject("bridge"), "") }
