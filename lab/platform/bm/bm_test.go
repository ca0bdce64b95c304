//go:build linux

package bm_test

import (
	"testing"

	"tare/lab/platform"
	"tare/lab/platform/bm"
	"tare/lab/platform/conformance"
)

var subject = conformance.Subject{
	Name: "bm",
	New: func(l conformance.Lab) (platform.Driver, error) {
		return &bm.Driver{Journal: l.Journal, State: l.State, Tare: l.Tare}, nil
	},
	Undo: bm.Undo(),
}

func TestMain(m *testing.M) { conformance.Main(m, subject) }

func TestConformance(t *testing.T) {
	conformance.Run(t, subject, conformance.Expectations{
		Provisionings: []string{""},
		SharesKernel:  true,
	})
}

func TestNoHello(t *testing.T) { conformance.NoHello(t, subject, "") }
