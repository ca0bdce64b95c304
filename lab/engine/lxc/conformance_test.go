//go:build linux

package lxc

import (
	"os/exec"
	"testing"

	"tare/internal/require"
	"tare/lab/engine/conformance"
	"tare/notebook"
)

func TestMain(m *testing.M) { conformance.Main(m, conformance.Of(Kind)) }

func TestConformance(t *testing.T) {
	_, err := exec.LookPath(Kind.Program)
	require.That(t, err == nil, Kind.Program+" ("+Kind.Install+")")
	conformance.Run(t, conformance.Of(Kind), conformance.Containers)
	t.Run("system", func(t *testing.T) { conformance.System(t, conformance.Of(Kind), conformance.Containers) })
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, conformance.Of(Kind), notebook.Vanilla) })
}
