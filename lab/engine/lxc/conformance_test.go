//go:build linux

package lxc

import (
	"os/exec"
	"testing"

	"tare/internal/require"
	"tare/lab/engine/conformance"
	"tare/lab/engine/criu"
	"tare/notebook"
)

func TestMain(m *testing.M) { conformance.Main(m, subject()) }

// subject saves its guests where CRIU is installed.
func subject() conformance.Subject {
	s := conformance.Of(Kind)
	s.Saves = criu.Missing() == ""
	return s
}

func TestRestored(t *testing.T) {
	require.Program(t, Kind.Program, criu.Program)
	conformance.Restored(t, subject(), conformance.Containers)
}

func TestConformance(t *testing.T) {
	_, err := exec.LookPath(Kind.Program)
	require.That(t, err == nil, Kind.Program+" ("+Kind.Install+")")
	conformance.Run(t, subject(), conformance.Containers)
	t.Run("system", func(t *testing.T) { conformance.System(t, subject(), conformance.Containers) })
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject(), notebook.Vanilla) })
}
